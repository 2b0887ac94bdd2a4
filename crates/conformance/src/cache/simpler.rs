//! Programs with files that do a little less.

use super::{CacheScript, CacheStep, FilePages};

impl CacheScript {
    /// Scripts that are simpler in one way each: a program less, no policy, fewer pages.
    pub fn simpler(&self) -> Vec<Self> {
        let without = (1..self.programs.len()).map(|program| self.without(program));
        let plain = (0..self.programs.len()).filter(|at| self.programs[*at].policy.is_some()).map(|at| {
            let mut script = self.clone();
            script.programs[at].policy = None;
            script
        });
        without.chain(plain).chain(self.with_fewer_pages()).collect()
    }

    /// The script without a program and its steps; later ones are numbered lower.
    fn without(&self, program: usize) -> Self {
        let mut script = self.clone();
        script.programs.remove(program);
        script.steps.retain(|step| step.program() != Some(program));
        for step in &mut script.steps {
            if let CacheStep::Read(number, _) | CacheStep::Write(number, _) | CacheStep::Take(number, _) =
                step
            {
                *number -= usize::from(*number > program);
            }
        }
        script
    }

    fn with_fewer_pages(&self) -> impl Iterator<Item = Self> + '_ {
        self.steps.iter().enumerate().flat_map(move |(at, step)| {
            step.smaller().into_iter().map(move |step| {
                let mut script = self.clone();
                script.steps[at] = step;
                script
            })
        })
    }
}

impl CacheStep {
    /// The same of half as many pages, and from the beginning of the file on.
    fn smaller(&self) -> Vec<Self> {
        let parts = |pages: &FilePages| {
            let half = FilePages { count: pages.count / 2, ..*pages };
            let start = FilePages { first: 0, ..*pages };
            [half, start].into_iter().filter(|part| part.count > 0 && part != pages).collect::<Vec<_>>()
        };
        match self {
            Self::Read(program, pages) => {
                parts(pages).into_iter().map(|part| Self::Read(*program, part)).collect()
            }
            Self::Write(program, pages) => {
                parts(pages).into_iter().map(|part| Self::Write(*program, part)).collect()
            }
            Self::Take(program, pages) if *pages > 1 => vec![Self::Take(*program, pages / 2)],
            Self::Take(..) | Self::Sync | Self::Drop => Vec::new(),
        }
    }
}
