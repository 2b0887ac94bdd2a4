//! Diagrams, read by Graphviz.

use crate::nodewise::without_variables;
use crate::sandbox::has;

use super::{exported, fed, machines};

#[test]
fn graphviz_reads_every_machine() {
    if !has("dot", "graphviz") {
        return;
    }
    for machine in machines() {
        let text = exported("dot", &machine);
        // Read and written again, without the layout, which takes its time.
        let read = fed(without_variables("dot").arg("-Tcanon"), &text);
        assert_eq!((read.code, read.stderr.as_str()), (Some(0), ""), "{machine}");
        let boxes = |text: &str| text.matches("label=\"node ").count();
        assert_eq!(boxes(&read.stdout), boxes(&text), "{machine}");
    }
    let wrong = fed(without_variables("dot").arg("-Tcanon"), "graph { a -- [");
    assert_ne!(wrong.code, Some(0), "a check that finds nothing is none");
}
