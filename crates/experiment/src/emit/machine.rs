//! Virtual machines.

use nodewise_machine::PolicyMode;
use nodewise_machine::plural::plural;

use super::{Emitted, Unsaid, Wish};

/// The elements of a libvirt domain.
///
/// # Source
/// libvirt, "Domain XML format", `vcpu` and `numatune`: the modes are strict, interleave, preferred and
/// restrictive; preferred takes one node.
pub(super) fn libvirt(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let threads = wish.threads.count().map(|count| {
        format!("libvirt has no setting for {}: set it inside the guest", plural(count, "thread"))
    });
    if let Some(threads) = threads.as_ref().filter(|_| wish.cpus().is_none() && wish.policy().is_none()) {
        return Err(Unsaid(threads.clone()));
    }
    let mut text = String::from("<!-- virsh edit DOMAIN: inside of <domain> -->\n");
    if let Some(cpus) = wish.cpus() {
        text += &format!("<vcpu placement='static' cpuset='{cpus}'>{}</vcpu>\n", cpus.len());
    }
    if let Some(policy) = wish.policy() {
        let mode = match policy.mode {
            PolicyMode::Bind => "strict",
            PolicyMode::Interleave => "interleave",
            PolicyMode::Preferred if policy.nodes.len() == 1 => "preferred",
            PolicyMode::Local | PolicyMode::Preferred | PolicyMode::Default => {
                return Err(Unsaid(
                    "libvirt has no mode for memory local to the CPU: leave numatune away".to_owned(),
                ));
            }
            PolicyMode::PreferredMany | PolicyMode::WeightedInterleave => {
                return Err(Unsaid(format!(
                    "libvirt has no mode for {}: expected bind, interleave, or one node preferred",
                    policy.mode
                )));
            }
        };
        text += &format!("<numatune>\n  <memory mode='{mode}' nodeset='{}'/>\n</numatune>\n", policy.nodes);
    }
    let cells = wish.policy().is_some_and(|policy| policy.nodes.len() > 1);
    let note = "a guest over several nodes sees one unless <cpu><numa> gives it cells of its own, with a <memnode> each";
    Ok(Emitted::new(text).notes(cells.then(|| note.to_owned())).notes(wish.huge_note()).notes(threads))
}
