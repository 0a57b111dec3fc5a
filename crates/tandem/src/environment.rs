//! Refuses misspelt environment variables: `TANDEM_BATCHSIZE` would be ignored silently, and the run
//! would use other settings than the user intended.

use crate::config::nearest::nearest;
use crate::failure::Advised;
use std::ffi::OsString;

/// The prefix of all variables of this program.
const OURS: &str = "TANDEM_";
/// Variables without a flag, and what they mean.
pub const WITHOUT_FLAG: [(&str, &str); 2] = [
    ("TANDEM_DATA_DIR", "Where the demo corpus is unpacked; default: the user's data directory"),
    ("NO_COLOR", "Disables colours on a terminal"),
];

/// Variables of earlier versions, and what to write instead.
const FORMER: [(&str, &str); 1] = [("TANDEM_PHONEMES", "TANDEM_PRONUNCIATION=espeak")];

/// Refuses a variable of an earlier version, and one whose name is close to one that the program reads. Other variables with the
/// prefix are ignored: they may belong to other programs.
pub fn refuse_near_misses(
    program: &clap::Command,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<(), Advised> {
    let mut known: Vec<String> = WITHOUT_FLAG.map(|(name, _)| name.to_string()).into();
    collect(program, &mut known);
    for (name, _) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(OURS)) else { continue };
        if known.iter().any(|known| known == name) {
            continue;
        }
        if let Some((_, now)) = FORMER.iter().find(|(former, _)| *former == name) {
            let fact = format!("the environment variable {name} has another name now");
            return Err(Advised::new(fact, format!("write {now}, or remove it for the default")));
        }
        let ends = known.iter().map(|known| known.strip_prefix(OURS).unwrap_or(known));
        if let Some(right) = nearest(&name[OURS.len()..], ends) {
            let fact = format!("the environment variable {name} is unknown");
            return Err(Advised::new(fact, format!("did you mean {OURS}{right}?")));
        }
    }
    Ok(())
}

fn collect(command: &clap::Command, known: &mut Vec<String>) {
    let read = command.get_arguments().filter_map(|flag| flag.get_env());
    known.extend(read.filter_map(|name| name.to_str()).map(String::from));
    command.get_subcommands().for_each(|command| collect(command, known));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_units::Hint;

    fn refused(name: &str) -> Option<String> {
        let flag = |id: &'static str, env: &'static str| clap::Arg::new(id).long(id).env(env);
        let prepare = clap::Command::new("prepare").arg(flag("batch-size", "TANDEM_BATCH_SIZE"));
        let train = clap::Command::new("train").arg(flag("lr", "TANDEM_LR"));
        let program = clap::Command::new("tandem").subcommand(prepare).subcommand(train);
        let variables = [(name.into(), "1".into())].into_iter();
        refuse_near_misses(&program, variables).err().and_then(|error| error.hint())
    }

    #[test]
    fn a_misspelt_variable_is_refused_with_the_right_name() {
        let right = Some("did you mean TANDEM_BATCH_SIZE?".to_string());
        assert_eq!(refused("TANDEM_BATCHSIZE"), right);
        assert_eq!(refused("TANDEM_BATCH_SISE"), right);
    }

    #[test]
    fn a_variable_of_an_earlier_version_is_refused_with_its_name_of_today() {
        let now = "write TANDEM_PRONUNCIATION=espeak, or remove it for the default";
        assert_eq!(refused("TANDEM_PHONEMES").as_deref(), Some(now));
    }

    #[test]
    fn known_variables_and_those_of_other_programs_are_accepted() {
        for name in ["TANDEM_LR", "TANDEM_DATA_DIR", "TANDEM_HOMEPAGE", "BATCHSIZE", "LR"] {
            assert_eq!(refused(name), None, "{name}");
        }
    }
}
