//! Any keys, sizes and readings.

use nodewise_terminal::Key;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use crate::{app, example, reading, screen, type_keys};

#[derive(Clone, Debug)]
enum Step {
    Key(Key),
    Size(u16, u16),
    /// A reading with this many processes.
    Reading(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let named = [
        Key::Up,
        Key::Down,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Enter,
        Key::Escape,
        Key::Backspace,
        Key::Tab,
        Key::BackTab,
        Key::Control('c'),
        Key::Control('u'),
    ];
    let letters = "12345jk/\\s<>rKem+-[]{}gG?hpq =x7".chars().collect::<Vec<_>>();
    prop_oneof![
        8 => prop::sample::select(letters).prop_map(|letter| Step::Key(Key::Char(letter))),
        4 => prop::sample::select(named.to_vec()).prop_map(Step::Key),
        1 => any::<char>().prop_map(|letter| Step::Key(Key::Char(letter))),
        2 => (0u16..210, 0u16..64).prop_map(|(width, height)| Step::Size(width, height)),
        1 => Just(Step::Size(80, 24)),
        2 => prop_oneof![Just(0u32), Just(1), 2u32..40].prop_map(Step::Reading),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_keys_and_sizes_are_survived(nodes in 1u32..12, steps in prop::collection::vec(step(), 0..40)) {
        let mut app = app(nodes, 7);
        let mut size = (80, 24);
        for step in steps {
            match step {
                Step::Key(key) => drop(app.handle(key)),
                Step::Size(width, height) => size = (width, height),
                Step::Reading(processes) => {
                    app.take(reading(&example::sample(nodes, processes, 200), &example::sample(nodes, processes, 202)));
                }
            }
            let text = screen(&mut app, size.0, size.1);
            prop_assert_eq!(text.lines().count(), usize::from(size.1));
            prop_assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{:?}", text);
        }
        // A list that is not empty has a selected line, and it is seen.
        type_keys(&mut app, "<Esc><Esc><Esc>2\\");
        app.take(reading(&example::sample(nodes, 30, 200), &example::sample(nodes, 30, 202)));
        let text = screen(&mut app, 100, 30);
        prop_assert_eq!(text.lines().filter(|line| line.starts_with('>')).count(), 1, "{}", text);
    }
}
