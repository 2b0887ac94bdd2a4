use super::vision::{Vision, contrast};
use super::*;

/// The least difference of colours that a reader has to distinguish, CIEDE2000.
const APART: f64 = 12.0;

/// The fill of a class in light and in dark.
fn fills(class: &str) -> Pair {
    let (_, light, dark) = shapes().find(|rule| rule.0 == class).unwrap();
    [light[0], dark[0]]
}

#[test]
fn every_text_is_legible_where_it_stands() {
    let boxes = [Role::Page, Role::Package, Role::Node, Role::MemoryNode, Role::Cache];
    let devices = [Role::Compute, Role::Network, Role::Disk, Role::OtherDevice];
    let on_boxes = [Tone::Plain, Tone::Faint, Tone::Notable].map(|tone| boxes.map(|role| (tone, role)));
    let cells = (0..=Role::FARTHEST).map(Role::Distance).chain([Role::NoDistance]);
    let own = cells.chain([Role::Thread, Role::SlowThread]).chain(devices).map(|role| (Tone::on(role), role));
    for (tone, role) in on_boxes.into_iter().flatten().chain(own) {
        // The least that WCAG 2.2 asks for text of this size (1.4.3, level AA).
        for (text, ground) in fills(tone_class(tone)).into_iter().zip(fills(role_class(role).unwrap())) {
            let found = contrast(text, ground);
            assert!(found >= 4.5, "{tone:?} on {role:?}: {text} on {ground}: {found:.2}");
        }
    }
}

#[test]
fn steps_of_the_scale_get_darker_or_lighter_and_neighbours_differ_for_every_reader() {
    for (theme, page) in fills("page").into_iter().enumerate() {
        for vision in Vision::ALL {
            let steps = STEPS.map(|step| vision.lab(step[theme]));
            let away = |at: usize| (steps[at].lightness - vision.lab(page).lightness).abs();
            for at in 1..steps.len() {
                let difference = steps[at - 1].difference(steps[at]);
                assert!(difference >= APART, "{vision:?}, theme {theme}, step {at}: {difference:.1}");
                assert!(away(at) > away(at - 1) + 5.0, "{vision:?}, theme {theme}, step {at} is not farther");
            }
        }
    }
}

#[test]
fn categories_differ_for_every_reader_and_show_on_the_page() {
    let free = fills("bar");
    let others = [[REST.1[0], REST.2[0]], free];
    let all: Vec<Pair> = CATEGORIES.into_iter().chain(others).collect();
    for (theme, page) in fills("page").into_iter().enumerate() {
        for vision in Vision::ALL {
            for (at, one) in all.iter().enumerate() {
                for other in &all[at + 1..] {
                    let (a, b) = (one[theme], other[theme]);
                    let difference = vision.lab(a).difference(vision.lab(b));
                    assert!(difference >= APART, "{vision:?}: {a} and {b}: {difference:.1}");
                }
            }
        }
        // The least that WCAG 2.2 asks for parts of graphics (1.4.11, level AA).
        for colour in CATEGORIES.map(|category| category[theme]) {
            let found = contrast(colour, page);
            assert!(found >= 3.0, "{colour} on {page}: {found:.2}");
        }
    }
}

#[test]
fn a_style_sheet_has_what_occurs_and_nothing_else() {
    let mut frame = Frame::new(Role::Page, 10.0, 10.0);
    frame.children.push(Frame::new(Role::Distance(9), 5.0, 5.0));
    let sheet = style_sheet(Theme::Auto, &Classes::from_frame(&frame));
    let [light, dark] = STEPS[5];
    for text in [format!(".d5{{fill:{light}}}"), format!(".d5{{fill:{dark}}}")] {
        assert!(sheet.contains(&text), "{sheet}");
    }
    assert!(!sheet.contains(".d4") && !sheet.contains(".k{") && !sheet.contains(".gpu"), "{sheet}");
}
