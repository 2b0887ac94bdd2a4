//! Placements by the cache lines that were counted under them: the text of `nodewise tune --machine M`.

use nodewise_machine::plural::plural;
use nodewise_machine::printable::printable;

use crate::digest::line_counts::{LineCounts, LocalShare, percent};
use crate::digest::ranking::{
    Decisive, RankedPhase, RankedPlacement, Ranking, first, is_void, may_be_first, places_of,
};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// The most phases that have a table, and the least share of the lines of the busiest that one with a table has.
const MOST_PHASES: usize = 5;
const LEAST_LINES: f64 = 0.01;

/// Writes the placements, the conclusion first.
pub fn ranking(ranking: &Ranking, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(0, &Line::from(conclusion(&ranking.placements)));
    let chosen = ranking.placements.iter().find_map(|ranked| ranked.counted.counts.chosen.as_deref());
    let of_phase = chosen.map(|name| format!(", of the phase {}", printable(name))).unwrap_or_default();
    let remark = format!("lines of 64 bytes, counted in a guest of the machine{of_phase}");
    page.heading("Placements", &remark);
    placements(&ranking.placements, &mut page);
    for remark in remarks(ranking) {
        page.line(4, &Line::new().with(Ink::Faint, format!("  {remark}")));
    }
    for uncounted in &ranking.uncounted {
        let text = format!("  not counted: {}: {}", printable(&uncounted.name), printable(&uncounted.why));
        page.line(4, &Line::new().with(Ink::Notable, text));
    }
    decisive(ranking, &mut page);
    phases(&ranking.phases, &mut page);
    page.finish()
}

/// Assumptions at whose ends other placements may be the fastest.
fn decisive(ranking: &Ranking, page: &mut Page) {
    let decisive: Vec<&Decisive> =
        ranking.decisive.iter().filter(|decisive| decisive.turns_the_first()).collect();
    if decisive.is_empty() {
        if first(&ranking.placements).count() > 1 {
            let text = "  No assumption alone decides which placement is the fastest.";
            page.line(4, &Line::new().with(Ink::Faint, text));
        }
        return;
    }
    page.heading("Assumptions that decide", "");
    let column = |head| Column { head, align: Align::Left, keep: Keep::Always };
    let mut table = Table::new(vec![column("assumption"), column("if"), column("fastest")]);
    for Decisive { assumption, ends } in decisive {
        for (end, places) in ends {
            let first = ranking.placements.iter().zip(places).filter(|(_, places)| may_be_first(places));
            let first: Vec<&str> = first.map(|(ranked, _)| ranked.counted.name.as_str()).collect();
            table.row(vec![
                assumption.words().into(),
                (*end).into(),
                if is_void(places.iter()) { "cannot be ranked".to_owned() } else { first.join(" or ") }
                    .into(),
            ]);
        }
    }
    table.write(page);
}

/// The phases that move most lines, in the order in which they were first marked.
fn phases(phases: &[RankedPhase], page: &mut Page) {
    let lines = |phase: &RankedPhase| {
        phase.placements.iter().map(|ranked| ranked.counted.counts.all().all).max().unwrap_or_default()
    };
    let mut shown: Vec<&RankedPhase> = phases.iter().collect();
    shown.sort_by_key(|phase| std::cmp::Reverse(lines(phase)));
    let most = shown.first().map(|phase| lines(phase)).unwrap_or_default() as f64;
    shown.retain(|phase| lines(phase) as f64 >= LEAST_LINES * most);
    shown.truncate(MOST_PHASES);
    shown.sort_by_key(|phase| phase.phase);
    let left_out = phases.len() - shown.len();
    for phase in shown {
        let name = phase.placements.first().map(|ranked| ranked.counted.counts.phase_name(phase.phase));
        let name = name.unwrap_or_default();
        let title = if phase.phase == 0 { "Outside of phases".to_owned() } else { format!("Phase {name}") };
        page.heading(&title, &decapitalised(&conclusion(&phase.placements)));
        placements(&phase.placements, page);
    }
    if left_out > 0 {
        let text = format!("  {} with fewer lines: --json has them", plural(left_out, "more phase"));
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
}

fn decapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |letter| letter.to_lowercase().chain(letters).collect())
}

/// The table of placements.
fn placements(placements: &[RankedPlacement], page: &mut Page) {
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut table = Table::new(vec![
        column("place", Align::Right),
        column("local", Align::Right),
        column("lines", Align::Right),
        column("in order", Align::Right),
        Column { head: "by node", align: Align::Left, keep: Keep::Unless(1) },
        column("placement", Align::Left),
    ])
    .naming_omitted();
    for ranked in placements {
        let counts = &ranked.counted.counts;
        let (first, last) = (*ranked.places.start(), *ranked.places.end());
        let place = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let in_order = LocalShare { local: counts.in_order(), all: counts.read_and_written().0 };
        table.row(vec![
            place.into(),
            percent(counts.all()).into(),
            counts.all().all.to_string().into(),
            percent(in_order).into(),
            by_node(counts).into(),
            ranked.counted.name.as_str().into(),
        ]);
    }
    table.write(page);
}

/// The placement that is predicted to be the fastest, or those among which it is.
fn conclusion(placements: &[RankedPlacement]) -> String {
    let first: Vec<&str> = first(placements).map(|ranked| ranked.counted.name.as_str()).collect();
    let all = plural(placements.len(), "placement");
    match first.as_slice() {
        [] => "No placement was counted".to_owned(),
        _ if placements.len() < 2 => "One placement: nothing to rank".to_owned(),
        [only] => format!("Predicted: {only} is the fastest of {all}"),
        _ if is_void(places_of(placements)) => format!("Cannot be ranked: the bounds of {all} are too near"),
        [others @ .., last] => {
            format!("Predicted: the fastest of {all} is {} or {last}", others.join(", "))
        }
    }
}

/// The share of the lines in the memory of each node.
fn by_node(counts: &LineCounts) -> String {
    let shares = counts.memory_nodes.iter().map(|node| {
        let of_node = counts.share(crate::digest::line_counts::OWN, |cell| cell.node == Some(*node)).all;
        let share = LocalShare { local: of_node, all: counts.all().all };
        format!("{node}: {:.0} %", share.percent().unwrap_or_default())
    });
    shares.collect::<Vec<_>>().join(", ")
}

/// The grounds of the places.
fn remarks(ranking: &Ranking) -> Vec<String> {
    let mut remarks = vec![
        "A placement is ahead of another where its bound is 1.5 times lower, whether lines wait for each \
         other or not, with half of the cache and twice the cache."
            .to_owned(),
    ];
    if ranking.known.assumed.is_any() {
        remarks.push(
            "Latencies and bandwidths are assumed from the distances where the machine does not give them; \
             --latency and --bandwidth take measured ones."
                .to_owned(),
        );
    }
    let more: Vec<f64> = ranking.known.growth.values().copied().filter(|growth| *growth > 1.0).collect();
    if let Some(most) = more.into_iter().reduce(f64::max) {
        remarks.push(if ranking.grows {
            format!(
                "The machine has up to {most:.0} times as many CPUs as the guest: places hold with as many \
                 more threads, each with as many lines, and without."
            )
        } else {
            "One thread does the work: more CPUs of the machine change nothing.".to_owned()
        });
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::ranking::tests::{counted, known, phased, ranking as sample};

    #[test]
    fn the_conclusion_comes_first() {
        assert_eq!(
            ranking(&sample(), &Style::plain(80)),
            "Predicted: the fastest of 3 placements is local or default

Placements  lines of 64 bytes, counted in a guest of the machine
  place    local  lines  in order  by node           placement
    1-2  100.0 %   1000    20.0 %  0: 50 %, 1: 50 %  local
    1-3   75.0 %   1000     0.0 %  0: 75 %, 1: 25 %  default
    2-3    0.0 %   1000     0.0 %  0: 0 %, 1: 100 %  membind=1
  A placement is ahead of another where its bound is 1.5 times lower, whether
    lines wait for each other or not, with half of the cache and twice the
    cache.
  Latencies and bandwidths are assumed from the distances where the machine does
    not give them; --latency and --bandwidth take measured ones.
  The machine has up to 4 times as many CPUs as the guest: places hold with as
    many more threads, each with as many lines, and without.
  not counted: weighted: it ends with exit code 3

Assumptions that decide
  assumption                  if     fastest
  lines in order under way    10     local or default
  lines in order under way    48     local
  other lines under way       1      local
  other lines under way       10     local or default
  assumed latency difference  half   cannot be ranked
  assumed latency difference  twice  local
"
        );
    }

    #[test]
    fn phases_have_a_table_each() {
        let text = ranking(&phased(), &Style::plain(80));
        let (_, phases) = text.split_once("\n\nOutside").unwrap();
        assert_eq!(
            phases,
            " of phases  one placement: nothing to rank
  place    local  lines  in order  by node           placement
      1  100.0 %     10     0.0 %  0: 100 %, 1: 0 %  membind=0

Phase fill  predicted: membind=0 is the fastest of 2 placements
  place    local  lines  in order  by node           placement
      1  100.0 %    500     0.0 %  0: 100 %, 1: 0 %  membind=0
      2    0.0 %    500     0.0 %  0: 0 %, 1: 100 %  default

Phase read\\x1b  predicted: default is the fastest of 2 placements
  place    local  lines  in order  by node           placement
      1  100.0 %   1000     0.0 %  0: 50 %, 1: 50 %  default
      2   50.0 %   1000     0.0 %  0: 100 %, 1: 0 %  membind=0
"
        );
        let mut many = phased();
        let few = many.phases[0].clone();
        assert_eq!(few.phase, 0);
        many.phases[0].placements[0].counted.counts.cells[0].read = [9; 3];
        assert!(
            ranking(&many, &Style::plain(80)).ends_with("  1 more phase with fewer lines: --json has them\n")
        );
        many.phases[0] = few;
        many.phases = (0..7).map(|phase| RankedPhase { phase, ..many.phases[1].clone() }).collect();
        assert!(
            ranking(&many, &Style::plain(80))
                .ends_with("  2 more phases with fewer lines: --json has them\n")
        );
    }

    #[test]
    fn one_fastest_and_none_are_named() {
        let near = || counted("near", &[(0, 0, 0, 0, 500)]);
        let far = counted("far", &[(0, 0, 1, 0, 500)]);
        let conclude =
            |placements| conclusion(&Ranking::new(placements, Vec::new(), known()).unwrap().placements);
        assert_eq!(conclude(vec![far, near()]), "Predicted: near is the fastest of 2 placements");
        assert_eq!(
            conclude(vec![near(), near()]),
            "Cannot be ranked: the bounds of 2 placements are too near"
        );
        assert_eq!(conclude(vec![near()]), "One placement: nothing to rank");
        assert_eq!(conclude(Vec::new()), "No placement was counted");
    }
}
