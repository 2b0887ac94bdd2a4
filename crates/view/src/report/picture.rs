//! Pictures within a page: their styles and names are their own there, and their colours follow the page.

/// The rule in a picture's style sheet that begins the colours for dark viewers.
const DARK: &str = "@media screen and (prefers-color-scheme:dark){";

/// A picture of ours, as SVG, for a page that has others: each name and each style of it begins with `scope`. Colours for
/// dark viewers come where the reader, by a switch of the page, or the system asks for them.
pub(super) fn within(picture: &str, scope: &str) -> String {
    let Some((before, rest)) = picture.split_once("<style>") else { return named(picture, scope, true) };
    let Some((style, after)) = rest.split_once("</style>") else { return named(picture, scope, true) };
    format!(
        "{}<style>{}</style>{}",
        named(before, scope, true),
        style_sheet(style, scope),
        named(after, scope, false)
    )
}

/// The tags of a picture with their names in its scope; the first gets the scope as its own.
fn named(text: &str, scope: &str, is_first: bool) -> String {
    let mut written = String::with_capacity(text.len() + 256);
    let mut is_first = is_first;
    for (at, part) in text.split('<').enumerate() {
        if at == 0 {
            written.push_str(part);
            continue;
        }
        written.push('<');
        let (tag, words) = part.split_once('>').unwrap_or((part, ""));
        let tag = tag.replace(" id=\"", &format!(" id=\"{scope}-"));
        let tag = tag.replace("=\"title desc\"", &format!("=\"{scope}-title {scope}-desc\""));
        if is_first && tag.starts_with("svg ") {
            written.push_str(&format!("svg id=\"{scope}\" {}", &tag["svg ".len()..]));
            is_first = false;
        } else {
            written.push_str(&tag);
        }
        if part.contains('>') {
            written.push('>');
        }
        written.push_str(words);
    }
    written
}

fn style_sheet(style: &str, scope: &str) -> String {
    let (light, dark) = style.split_once(DARK).unwrap_or((style, ""));
    let dark = dark.strip_suffix('}').unwrap_or(dark);
    let mut sheet = scoped(light, &format!("#{scope}"));
    if !dark.is_empty() {
        let system = scoped(dark, &format!(":root:not([data-theme=light]) #{scope}"));
        let reader = scoped(dark, &format!(":root[data-theme=dark] #{scope}"));
        sheet.push_str(&format!("{DARK}{system}}}@media screen{{{reader}}}"));
    }
    sheet
}

/// Rules without nesting, each below `scope`.
fn scoped(rules: &str, scope: &str) -> String {
    let mut sheet = String::with_capacity(rules.len() * 2);
    for rule in rules.split_inclusive('}') {
        let Some((selectors, body)) = rule.split_once('{') else { continue };
        let selectors: Vec<String> =
            selectors.split(',').map(|selector| format!("{scope} {}", selector.trim())).collect();
        sheet.push_str(&format!("{}{{{body}", selectors.join(",")));
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{Caches, Theme, machine_svg};
    use nodewise_machine::spec;

    #[test]
    fn two_pictures_in_a_page_share_no_name_and_no_style() {
        let picture = "<svg xmlns=\"x\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">a id=\"title\"</title>\
            <desc id=\"desc\">d</desc><style>text{a:b}.w,.t{c:d}@media screen and (prefers-color-scheme:dark){.w{e:f}}</style>\
            <g id=\"node-0\"><title>x</title></g></svg>";
        let expected = "<svg id=\"p1\" xmlns=\"x\" role=\"img\" aria-labelledby=\"p1-title p1-desc\">\n\
            <title id=\"p1-title\">a id=\"title\"</title><desc id=\"p1-desc\">d</desc>\
            <style>#p1 text{a:b}#p1 .w,#p1 .t{c:d}@media screen and (prefers-color-scheme:dark){\
            :root:not([data-theme=light]) #p1 .w{e:f}}@media screen{:root[data-theme=dark] #p1 .w{e:f}}</style>\
            <g id=\"p1-node-0\"><title>x</title></g></svg>";
        assert_eq!(within(picture, "p1"), expected);
    }

    #[test]
    fn a_machines_picture_stays_well_formed() {
        let picture =
            machine_svg(&spec::machine("2x(2x(4c 64G)); dist=11,21").unwrap(), Caches::All, Theme::Auto);
        let inside = within(&picture, "p2");
        let read = roxmltree::Document::parse(&inside).unwrap();
        assert_eq!(read.root_element().attribute("id"), Some("p2"));
        let names: Vec<&str> = read.descendants().filter_map(|node| node.attribute("id")).collect();
        assert!(names.len() > 2 && names.iter().all(|name| name.starts_with("p2")), "{names:?}");
    }
}
