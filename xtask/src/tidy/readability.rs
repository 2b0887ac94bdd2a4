//! The readability of pages: how long sentences are, and Flesch's reading ease.
//!
//! Only prose counts: no headings, tables, lists of figures or code blocks.

/// The heads of the columns of [`row`].
pub const HEADER: &str = "Flesch  mean words  longest  sentences  page";

/// Sentences with fewer words are captions and labels.
const WORDS: usize = 4;

/// One page in figures.
pub fn row(path: &str, text: &str) -> String {
    let sentences = sentences(text);
    let lengths: Vec<usize> = sentences.iter().map(|sentence| sentence.split_whitespace().count()).collect();
    let words: usize = lengths.iter().sum();
    let syllables: usize =
        sentences.iter().flat_map(|sentence| sentence.split_whitespace()).map(syllables).sum();
    if words == 0 {
        return format!("{:>6}  {:>10}  {:>7}  {:>9}  {path}", "-", "-", "-", 0);
    }
    let mean = words as f64 / lengths.len() as f64;
    // R. Flesch, "A new readability yardstick", Journal of Applied Psychology 32 (1948).
    let ease = 206.835 - 1.015 * mean - 84.6 * syllables as f64 / words as f64;
    let longest = lengths.iter().max().unwrap_or(&0);
    format!("{ease:>6.1}  {mean:>10.1}  {longest:>7}  {:>9}  {path}", lengths.len())
}

/// The sentences of a page's prose.
fn sentences(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut fenced = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let is_fence = trimmed.starts_with("```");
        fenced ^= is_fence;
        let is_prose = !(fenced || is_fence || trimmed.starts_with(['|', '#']) || line.starts_with("    "));
        let item = trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("> "));
        if !is_prose || trimmed.is_empty() || item.is_some() {
            paragraphs.push(String::new());
        }
        if let (true, Some(last)) = (is_prose, paragraphs.last_mut()) {
            last.push_str(item.unwrap_or(trimmed));
            last.push(' ');
        }
    }
    paragraphs
        .iter()
        .flat_map(|paragraph| split(&without_code(paragraph)))
        .filter(|sentence| sentence.split_whitespace().count() >= WORDS)
        .collect()
}

/// Replaces each piece of code by one word.
fn without_code(text: &str) -> String {
    text.split('`').enumerate().map(|(at, piece)| if at % 2 == 1 { "code" } else { piece }).collect()
}

/// Splits at full stops, question marks and colons that end a clause.
fn split(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(last) = sentences.last_mut() {
            last.push_str(word);
            last.push(' ');
        }
        if word.trim_end_matches([')', '"', '*']).ends_with(['.', '?', '!']) {
            sentences.push(String::new());
        }
    }
    sentences
}

/// Groups of vowels, without a silent e at the end; at least one.
fn syllables(word: &str) -> usize {
    let word: String = word.to_lowercase().chars().filter(|c| c.is_alphabetic()).collect();
    let is_vowel = |c: char| "aeiouy".contains(c);
    let mut groups = 0;
    let mut inside = false;
    for c in word.chars() {
        if is_vowel(c) && !inside {
            groups += 1;
        }
        inside = is_vowel(c);
    }
    let silent = word.ends_with('e') && !word.ends_with("le") && groups > 1;
    (groups - usize::from(silent)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_split_into_sentences() {
        let text = "# Title of it all\n\nThe first one `a b.c` is\nhere now. And this (is two). \n\n```text\nno prose here at all\n```\n\
            - an item of a list\n- a second item too\n| a | b | c | d |\n";
        assert_eq!(
            sentences(text),
            [
                "The first one code is here now. ",
                "And this (is two). ",
                "an item of a list ",
                "a second item too "
            ]
        );
    }

    #[test]
    fn syllables_are_groups_of_vowels() {
        for (word, expected) in [("node", 1), ("memory", 3), ("table", 2), ("the", 1), ("a", 1), ("CPU", 1)] {
            assert_eq!(syllables(word), expected, "{word}");
        }
    }

    #[test]
    fn a_row_has_the_figures_of_a_page() {
        let row = row("a.md", "The cat sat on the mat.");
        // Six words, six syllables, one sentence: 206.835 - 6.09 - 84.6.
        assert!(row.contains("116.1") && row.contains("6.0") && row.ends_with("a.md"), "{row}");
    }
}
