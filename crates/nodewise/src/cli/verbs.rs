//! The verbs as one table.
//!
//! clap builds every option of every verb at each start, unless a verb's options are
//! [deferred](clap::Command::defer) until that verb is typed. Its derive does not defer them, and knows no command line
//! with a single verb, so the two traits that it would write are written here, by the table.

use clap::Command;

/// Makes the command line of the table: the functions are not its business. A verb that only works on the running
/// system does not show `--machine` in its help.
macro_rules! verbs {
    ($($name:literal $variant:ident($arguments:ty) => $function:path $(, here $hint:literal)?, $about:literal;)*) => {
        /// The verbs.
        #[derive(Debug)]
        pub enum Verb {
            $(
                #[doc = $about]
                $variant($arguments),
            )*
        }

        impl Verb {
            /// Name and hint of a verb that only works on the running system.
            pub fn only_here(&self) -> Option<(&'static str, &'static str)> {
                match self {
                    $($(Self::$variant(_) => Some(($name, $hint)),)?)*
                    _ => None,
                }
            }

            /// The options of the verb with this name.
            pub fn definition(name: &str) -> Option<clap::Command> {
                match name {
                    $($name => Some(clap::Command::new($name).about($about).defer(|verb| {
                        $(let verb = verbs::without_machine(verb, $hint);)?
                        verbs::with_negative_numbers(<$arguments as clap::Args>::augment_args(verb).about($about))
                    })),)*
                    _ => None,
                }
            }
        }

        impl clap::Subcommand for Verb {
            fn augment_subcommands(command: clap::Command) -> clap::Command {
                command.subcommands([$($name),*].into_iter().filter_map(Self::definition))
            }

            fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
                Self::augment_subcommands(command)
            }

            fn has_subcommand(name: &str) -> bool {
                [$($name),*].contains(&name)
            }
        }

        impl clap::FromArgMatches for Verb {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                Self::from_arg_matches_mut(&mut matches.clone())
            }

            fn from_arg_matches_mut(matches: &mut clap::ArgMatches) -> Result<Self, clap::Error> {
                let (name, mut own) = matches.remove_subcommand().unwrap_or_default();
                match name.as_str() {
                    $($name => {
                        <$arguments as clap::FromArgMatches>::from_arg_matches_mut(&mut own).map(Self::$variant)
                    })*
                    _ => Err(clap::Error::raw(clap::error::ErrorKind::MissingSubcommand, "expected a verb")),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                Self::from_arg_matches(matches).map(|verb| *self = verb)
            }
        }
    };
}
pub(super) use verbs;

/// Takes `--machine` out of a verb's help. It is still read, to be refused in words that say why.
pub(super) fn without_machine(verb: Command, _hint: &str) -> Command {
    verb.mut_args(|argument| if argument.get_id() == "machine" { argument.hide(true) } else { argument })
}

/// Takes `-1` behind an option for its value, which its parser refuses by the option's name: clap takes it
/// for an option of its own otherwise.
pub(super) fn with_negative_numbers(verb: Command) -> Command {
    verb.mut_args(|argument| {
        let takes_value = argument.get_long().is_some() && argument.get_action().takes_values();
        argument.allow_negative_numbers(takes_value)
    })
    .mut_subcommands(with_negative_numbers)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Cli;

    #[test]
    fn the_long_help_of_a_verb_begins_as_its_line_in_the_table() {
        let mut command = Cli::command();
        command.build();
        for verb in command.get_subcommands() {
            let about = verb.get_about().expect("the table has a line for each").to_string();
            if let Some(long) = verb.get_long_about() {
                assert!(long.to_string().starts_with(&about), "{}: {long}", verb.get_name());
            }
        }
    }
}
