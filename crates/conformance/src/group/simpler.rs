//! Groups with a little less in them.

use super::{GroupScript, GroupStep, Limits};

impl GroupScript {
    /// Groups that are simpler in one way each: a program less, no policy, no further limit, fewer pages.
    pub fn simpler(&self) -> Vec<Self> {
        let without = (1..self.programs.len()).map(|program| self.without(program));
        let plain = (0..self.programs.len()).filter(|at| self.programs[*at].policy.is_some()).map(|at| {
            let mut script = self.clone();
            script.programs[at].policy = None;
            script
        });
        let Limits { high, swap_max, kills_all, .. } = self.limits;
        let mut fewer_limits = Vec::new();
        if high.is_some() {
            fewer_limits.push(Limits { high: None, ..self.limits });
        }
        if swap_max.is_some() {
            fewer_limits.push(Limits { swap_max: None, ..self.limits });
        }
        if kills_all {
            fewer_limits.push(Limits { kills_all: false, ..self.limits });
        }
        let limits = fewer_limits.into_iter().map(|limits| Self { limits, ..self.clone() });
        without.chain(plain).chain(limits).chain(self.joined()).chain(self.with_fewer_pages()).collect()
    }

    /// The script without a program and its steps; later ones are numbered lower.
    fn without(&self, program: usize) -> Self {
        let mut script = self.clone();
        script.programs.remove(program);
        script.steps.retain(|step| step.program() != Some(program));
        for step in &mut script.steps {
            if let GroupStep::Take(number, _) | GroupStep::Adjust(number, _) = step {
                *number -= usize::from(*number > program);
            }
        }
        script
    }

    /// Scripts in which a program takes at once what it takes in two steps one after the other.
    fn joined(&self) -> impl Iterator<Item = Self> + '_ {
        self.steps.windows(2).enumerate().filter_map(|(at, pair)| {
            let [GroupStep::Take(program, pages), GroupStep::Take(next, more)] = pair else { return None };
            (program == next).then(|| {
                let mut script = self.clone();
                script.steps[at] = GroupStep::Take(*program, pages + more);
                script.steps.remove(at + 1);
                script
            })
        })
    }

    fn with_fewer_pages(&self) -> impl Iterator<Item = Self> + '_ {
        let larger = self.steps.iter().enumerate().filter_map(|(at, step)| match step {
            GroupStep::Take(program, pages) if *pages > 1 => Some((at, *program, *pages)),
            _ => None,
        });
        larger.flat_map(move |(at, program, pages)| {
            [1, pages / 2].into_iter().filter(move |less| (1..pages).contains(less)).map(move |less| {
                let mut script = self.clone();
                script.steps[at] = GroupStep::Take(program, less);
                script
            })
        })
    }
}

impl GroupStep {
    /// The program of the step.
    pub const fn program(&self) -> Option<usize> {
        match self {
            Self::Take(program, _) | Self::Adjust(program, _) => Some(*program),
            Self::Limit(..) | Self::Allow(_) => None,
        }
    }
}
