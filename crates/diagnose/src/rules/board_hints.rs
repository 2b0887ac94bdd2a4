//! A Raspberry Pi could use its memory card better, or sleep.

use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "board-hints",
    title: "a Raspberry Pi does not use its memory card's command queue",
    severity: Severity::Info,
    on: any,
    needs: &[Fact::Board],
    sign: "the kernel's log of the start has no line about a command queue of the memory card, on a Raspberry Pi 5",
    thresholds: &[],
    traps: "a card without a queue (class A1 and older); a system that starts from another disk",
    explains: &[],
    sources: &[
        "raspberrypi/linux: dtparam=sd_cqe",
        "rpi-eeprom#733: SDRAM_BANKLOW, which nodewise emulation status reads",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let Some(board) = situation.site.and_then(|site| site.board.known()) else { return Vec::new() };
    if !board.model.starts_with("Raspberry Pi 5") || board.card_queue != Some(false) {
        return Vec::new();
    }
    let summary = "the memory card's command queue is not used";
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Possible;
    let model = nodewise_machine::printable::quote(&board.model).to_string();
    finding.evidence = vec![
        Evidence::new("board", Value::text(model), shown::BOARD),
        Evidence::new("command queue", Value::text("no line about it"), shown::BOOT_LOG),
    ];
    if let Some(sleep) = &board.sleep {
        finding.evidence.push(Evidence::new("sleep", Value::text(sleep.words.join(" ")), shown::SLEEP));
    }
    finding.mends = vec![Mend::words(
        "dtparam=sd_cqe=on in config.txt, with a card of class A2; take the line out to go back",
        Scope::Reboot,
    )];
    vec![finding]
}
