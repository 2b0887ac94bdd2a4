//! Names of users.

use super::*;

#[test]
fn users_have_names_where_the_system_has_a_list_of_them() {
    const FILE: &str = "/etc/passwd";
    let names = |sample: &Sample| {
        sample.users.iter().map(|(user, name)| (*user, name.to_string())).collect::<Vec<_>>()
    };
    let process = with(machine(), 30, 7, 11);
    let listed = process.clone().file(FILE, "root:x:0:0::/root:\npg\u{1b}:x:8:8::/:\n");
    let mut sampler = Sampler::new(Tree::memory(listed), all());
    let sample = sampler.sample(at(1));
    assert_eq!(names(&sample), [(8, "pg\u{1b}".to_owned())], "no user without a process");
    assert_eq!(sample.unread.iter().find(|unread| unread.fact == "names of users"), None);
    sampler.continue_with(Tree::memory(process.clone().file(FILE, "renamed:x:8:8::/:\n")));
    assert_eq!(names(&sampler.sample(at(60)))[0].1, "pg\u{1b}", "not read again yet");
    assert_eq!(names(&sampler.sample(at(61)))[0].1, "renamed");
    let nameless = |files: Memory| {
        let mut sampler = Sampler::new(Tree::memory(files), all());
        let mut unread = || {
            let sample = sampler.sample(at(1));
            assert_eq!(names(&sample), []);
            sample.unread.into_iter().filter(|unread| unread.fact == "names of users").collect::<Vec<_>>()
        };
        assert_eq!(unread(), unread(), "every sample says so, and not only the first");
        unread().into_iter().map(|unread| unread.reason).collect::<Vec<_>>()
    };
    assert_eq!(nameless(process.clone()), <[&str; 0]>::default(), "a capture has no users");
    assert_eq!(nameless(process.clone().unreadable(FILE, ReadCause::System(13))), ["permission denied"]);
    assert_eq!(
        nameless(process.file(FILE, "pg:x:eight\n")),
        ["/etc/passwd:1: expected a name, a password and a number, with colons between, found \"eight\""]
    );
}
