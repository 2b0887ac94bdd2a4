//! Shared memory: the texts of `nodewise shm`.

use nodewise_machine::Bytes;

use crate::digest::shm::{Object, Shared};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

fn size(size: Option<Bytes>) -> Line {
    size.map(|size| size.to_string().into()).unwrap_or_default()
}

/// Writes segments and file systems in memory.
pub fn shm(shared: &Shared, style: &Style) -> String {
    let mut page = Page::new(*style);
    let remark = if shared.segments.is_empty() { "none" } else { "" };
    page.heading("System V segments", remark);
    let mut table = Table::new(vec![
        column("id", Align::Right),
        column("key", Align::Right),
        column("user", Align::Right),
        column("rights", Align::Right),
        column("size", Align::Right),
        column("resident", Align::Right),
        column("swapped", Align::Right),
        column("attaches", Align::Left),
    ]);
    for segment in &shared.segments {
        table.row(vec![
            segment.id.to_string().into(),
            format!("{:#x}", segment.key).into(),
            segment.user.to_string().into(),
            format!("{:03o}", segment.mode & 0o777).into(),
            segment.size.to_string().into(),
            size(segment.resident),
            size(segment.swapped),
            segment.attaches.to_string().into(),
        ]);
    }
    if !table.is_empty() {
        table.write(&mut page);
    }
    page.heading("File systems in memory", if shared.mounts.is_empty() { "none" } else { "" });
    let mut table = Table::new(vec![
        column("kind", Align::Left),
        column("size", Align::Right),
        column("policy", Align::Left),
        column("huge", Align::Left),
        column("folder", Align::Left),
    ]);
    for mount in &shared.mounts {
        let text = |text: &Option<String>| text.as_deref().map(Line::from).unwrap_or_default();
        table.row(vec![
            mount.kind.as_str().into(),
            size(mount.size),
            text(&mount.policy),
            text(&mount.huge),
            mount.folder.as_str().into(),
        ]);
    }
    if !table.is_empty() {
        table.write(&mut page);
    }
    page.finish()
}

/// Writes one segment or file: its pages by node, and its policies.
pub fn object(object: &Object, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading(&object.name, &object.size.to_string());
    let mut table = Table::new(vec![column("node", Align::Right), column("memory", Align::Left)]);
    for (node, size) in &object.nodes {
        table.row(vec![node.to_string().into(), size.to_string().into()]);
    }
    if object.absent > Bytes::new(0) {
        table.row(vec!["none".into(), format!("{} not allocated, or swapped out", object.absent).into()]);
    }
    table.write(&mut page);
    for range in &object.policies {
        let text = match object.policies.len() {
            1 => format!("  policy {}", range.policy),
            _ => format!("  policy {} from {:#x}, {}", range.policy, range.offset, Bytes::new(range.length)),
        };
        page.line(4, &Line::from(text));
    }
    match object.misplaced {
        Some(size) if size > Bytes::new(0) => {
            let text = format!("{size} is not where the policy wants it (--move moves it)");
            page.line(4, &Line::from("  ").with(Ink::Notable, text));
        }
        Some(_) => page.line(4, &Line::from("  every page is where the policy wants it")),
        None => {}
    }
    for note in &object.notes {
        page.line(4, &Line::from(format!("  {note}")));
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::shm::{Mount, PolicyRange, Segment};
    use crate::json;
    use nodewise_machine::NodeId;

    #[test]
    fn segments_and_mounts_are_listed() {
        let shared = Shared {
            segments: vec![Segment {
                key: -559_038_737,
                id: 5,
                user: 1000,
                mode: 0o1640,
                size: Bytes::from_mib(64),
                resident: Some(Bytes::from_mib(32)),
                swapped: None,
                attaches: 2,
            }],
            mounts: vec![Mount {
                folder: "/dev/\x1bshm".to_owned(),
                kind: "tmpfs".to_owned(),
                size: Some(Bytes::from_gib(8)),
                policy: Some("interleave:0-1".to_owned()),
                huge: None,
            }],
        };
        let expected = "\
System V segments
  id         key  user  rights    size  resident  attaches
   5  0xdeadbeef  1000     640  64 MiB    32 MiB  2

File systems in memory
  kind    size  policy          folder
  tmpfs  8 GiB  interleave:0-1  /dev/\\x1bshm
";
        assert_eq!(shm(&shared, &Style::plain(80)), expected);
        let document: serde_json::Value = serde_json::from_str(&json::shm::shm(&shared)).unwrap();
        assert_eq!(document["schema"], "nodewise.shm/1");
        assert_eq!(document["segments"][0]["resident_bytes"], 32 << 20);
        assert_eq!(document["segments"][0]["swapped_bytes"], serde_json::Value::Null);
        assert_eq!(document["segments"][0]["mode"], "640");
        assert_eq!(document["mounts"][0]["policy"], "interleave:0-1");
        let none = "System V segments  none\n\nFile systems in memory  none\n";
        assert_eq!(shm(&Shared::default(), &Style::plain(80)), none);
    }

    #[test]
    fn an_object_has_nodes_and_policies() {
        let range = |offset, length, policy: &str| PolicyRange { offset, length, policy: policy.to_owned() };
        let mut shown = Object {
            name: "segment 5".to_owned(),
            size: Bytes::from_mib(64),
            nodes: vec![(NodeId::new(0), Bytes::from_mib(16)), (NodeId::new(2), Bytes::from_mib(8))],
            absent: Bytes::from_mib(40),
            policies: vec![range(0, 1 << 20, "bind:0"), range(1 << 20, 63 << 20, "default")],
            misplaced: Some(Bytes::from_mib(8)),
            notes: vec!["done".to_owned()],
        };
        let expected = "\
segment 5  64 MiB
  node  memory
     0  16 MiB
     2  8 MiB
  none  40 MiB not allocated, or swapped out
  policy bind:0 from 0x0, 1 MiB
  policy default from 0x100000, 63 MiB
  8 MiB is not where the policy wants it (--move moves it)
  done
";
        assert_eq!(object(&shown, &Style::plain(80)), expected);
        let document: serde_json::Value = serde_json::from_str(&json::shm::object(&shown)).unwrap();
        assert_eq!(document["nodes"][1]["size_bytes"], 8 << 20);
        assert_eq!(document["policies"][1]["offset_bytes"], 1 << 20);
        assert_eq!(
            (&document["misplaced_bytes"], &document["absent_bytes"]),
            (&(8 << 20).into(), &(40 << 20).into())
        );
        shown.misplaced = Some(Bytes::new(0));
        assert!(object(&shown, &Style::plain(80)).contains("every page is where"));
    }
}
