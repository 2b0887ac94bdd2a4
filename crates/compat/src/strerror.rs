//! Errors in the C library's words.

use std::io;

/// The words for an `errno`: `No such file or directory`.
pub fn words(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_strerror() {
        for (errno, expected) in [(0, "Success"), (2, "No such file or directory"), (22, "Invalid argument")]
        {
            assert_eq!(words(errno), expected);
        }
    }
}
