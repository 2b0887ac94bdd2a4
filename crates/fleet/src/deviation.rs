//! Facts that few machines of a kind have otherwise than all others.

use std::collections::BTreeMap;

use nodewise_machine::order::Order as _;

use crate::structure::FactValue;
use crate::survey::HostSurvey;

/// Machines of a kind that must know a fact before one of them deviates.
const FEWEST: usize = 5;
/// The part of them that must agree.
const AGREED: f64 = 0.8;
/// Sizes within this part of each other are equal: kernels keep a little more or less for themselves.
const TOLERANCE: f64 = 0.02;
/// Values of a mixed fact that are listed.
const MOST_VALUES: usize = 8;

/// A machine whose fact differs from that of most machines of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct FactDeviation {
    pub host: String,
    pub fact: String,
    /// Foreign text.
    pub value: String,
    pub usual: String,
    /// Machines with the usual value, and machines that know the fact.
    pub agreed: usize,
    pub of: usize,
}

/// A fact with no value that most machines of a kind share.
#[derive(Clone, Debug, PartialEq)]
pub struct MixedFact {
    pub fact: String,
    /// Values with the number of machines, the most frequent first; the rest is left out.
    pub values: Vec<(String, usize)>,
    /// Different values.
    pub different: usize,
}

/// Machines of one kind, whatever their layout.
#[derive(Clone, Debug, PartialEq)]
pub struct HardwareKind {
    /// The hardware in words. Foreign text.
    pub words: String,
    pub hosts: usize,
    /// Facts on which most machines agree: the value, and those with it.
    pub usual: BTreeMap<String, UsualFact>,
    pub deviations: Vec<FactDeviation>,
    pub mixed: Vec<MixedFact>,
}

/// A value that most machines of a kind have.
#[derive(Clone, Debug, PartialEq)]
pub struct UsualFact {
    pub value: FactValue,
    pub agreed: usize,
    pub of: usize,
}

impl UsualFact {
    /// Whether a value is as usual.
    pub fn fits(&self, value: &FactValue) -> bool {
        match (&self.value, value) {
            (FactValue::Size(usual), FactValue::Size(value)) => {
                let (usual, value) = (usual.get() as f64, value.get() as f64);
                (value - usual).abs() <= TOLERANCE * usual
            }
            (usual, value) => usual == value,
        }
    }
}

/// The kinds of these machines, that with most hosts first.
pub fn kinds(surveys: &[HostSurvey]) -> Vec<HardwareKind> {
    let mut members: BTreeMap<&str, Vec<&HostSurvey>> = BTreeMap::new();
    for survey in surveys {
        members.entry(&survey.structure.kind).or_default().push(survey);
    }
    let mut kinds: Vec<HardwareKind> =
        members.into_iter().map(|(words, machines)| kind(words, &machines)).collect();
    kinds.order_by_key(|kind| std::cmp::Reverse(kind.hosts));
    kinds
}

fn kind(words: &str, machines: &[&HostSurvey]) -> HardwareKind {
    let mut kind = HardwareKind {
        words: words.to_owned(),
        hosts: machines.len(),
        usual: BTreeMap::new(),
        deviations: Vec::new(),
        mixed: Vec::new(),
    };
    let mut facts: BTreeMap<&str, Vec<(&str, &FactValue)>> = BTreeMap::new();
    for survey in machines {
        for (name, value) in &survey.structure.facts {
            facts.entry(name).or_default().push((&survey.key.host, value));
        }
    }
    for (fact, values) in facts.into_iter().filter(|(_, values)| values.len() >= FEWEST) {
        match usual(&values) {
            Some(usual) => {
                let others = values.iter().filter(|(_, value)| !usual.fits(value));
                kind.deviations.extend(others.map(|(host, value)| FactDeviation {
                    host: (*host).to_owned(),
                    fact: fact.to_owned(),
                    value: value.to_string(),
                    usual: usual.value.to_string(),
                    agreed: usual.agreed,
                    of: usual.of,
                }));
                kind.usual.insert(fact.to_owned(), usual);
            }
            None => kind.mixed.push(mixed(fact, &values)),
        }
    }
    kind
}

/// The value on which most agree.
fn usual(values: &[(&str, &FactValue)]) -> Option<UsualFact> {
    let mut sizes: Vec<_> = values
        .iter()
        .filter_map(|(_, value)| if let FactValue::Size(size) = value { Some(*size) } else { None })
        .collect();
    sizes.sort_unstable();
    let value = match sizes.get(sizes.len() / 2) {
        Some(middle) if sizes.len() == values.len() => FactValue::Size(*middle),
        _ => counted(values).into_iter().next().map(|(value, _)| FactValue::Text(value))?,
    };
    let mut usual = UsualFact { value, agreed: 0, of: values.len() };
    usual.agreed = values.iter().filter(|(_, value)| usual.fits(value)).count();
    (usual.agreed as f64 >= AGREED * usual.of as f64).then_some(usual)
}

/// Values with how often each is there, the most frequent first.
fn counted(values: &[(&str, &FactValue)]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, value) in values {
        *counts.entry(value.to_string()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.order_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

fn mixed(fact: &str, values: &[(&str, &FactValue)]) -> MixedFact {
    let mut values = counted(values);
    let different = values.len();
    values.truncate(MOST_VALUES);
    MixedFact { fact: fact.to_owned(), values, different }
}

#[cfg(test)]
mod tests {
    use nodewise_machine::Bytes;

    use super::*;
    use crate::survey::tests::survey;

    fn fleet(values: &[FactValue]) -> Vec<HostSurvey> {
        values
            .iter()
            .enumerate()
            .map(|(at, value)| {
                let mut survey = survey(&format!("n{at}"));
                survey.structure.facts = BTreeMap::from([("fact".to_owned(), value.clone())]);
                survey
            })
            .collect()
    }

    fn deviating(values: &[FactValue]) -> Vec<String> {
        kinds(&fleet(values))[0]
            .deviations
            .iter()
            .map(|one| format!("{} {} {}", one.host, one.value, one.usual))
            .collect()
    }

    fn texts(texts: &[&str]) -> Vec<FactValue> {
        texts.iter().map(|text| FactValue::Text((*text).to_owned())).collect()
    }

    #[test]
    fn the_odd_one_out_deviates_and_an_even_mix_does_not() {
        assert_eq!(deviating(&texts(&["a", "a", "b", "a", "a"])), ["n2 b a"]);
        assert_eq!(deviating(&texts(&["a", "a", "b", "a"])), Vec::<String>::new(), "four are too few");
        let mix = texts(&["a", "a", "b", "b", "a", "a"]);
        assert_eq!(deviating(&mix), Vec::<String>::new());
        assert_eq!(kinds(&fleet(&mix))[0].mixed[0].values, [("a".to_owned(), 4), ("b".to_owned(), 2)]);
    }

    #[test]
    fn sizes_differ_from_two_percent_on() {
        let sizes =
            |mib: &[u64]| mib.iter().map(|mib| FactValue::Size(Bytes::from_mib(*mib))).collect::<Vec<_>>();
        assert_eq!(deviating(&sizes(&[65_536, 65_530, 65_000, 65_536, 65_536])), Vec::<String>::new());
        assert_eq!(deviating(&sizes(&[65_536, 65_530, 49_152, 65_536, 65_536])), ["n2 48 GiB 64 GiB"]);
    }
}
