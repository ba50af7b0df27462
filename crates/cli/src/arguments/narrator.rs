//! Who writes the prose of a report.

use std::path::PathBuf;
use std::str::FromStr;

use inferometer_model::BaseUrl;

/// Taken in by the commands that write a report.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct NarratorArguments {
    /// Let a model write the prose: `target` for the one that was measured, or the base URL of
    /// another server. Every sentence is checked against the data; what fails is dropped
    #[arg(long, value_name = "URL|target", help_heading = "Report")]
    pub(crate) narrator: Option<NarratorChoice>,
    /// A file with the API key of the narrator's server. `suite --narrator target` has the target's
    /// key; of what is stored no key is known, so `report` sends one only if it is named here
    #[arg(long, value_name = "FILE", requires = "narrator", help_heading = "Report")]
    pub(crate) narrator_key_file: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NarratorChoice {
    /// The model that was measured.
    Target,
    Url(BaseUrl),
}

impl FromStr for NarratorChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "target" => Ok(Self::Target),
            // A slip of `target` would be taken for the name of a host.
            other if !other.contains("://") => Err(format!(
                "neither `target` nor the base URL of a server, such as http://{}",
                if other.contains([':', '.']) { other } else { "localhost:8000" }
            )),
            url => url
                .parse()
                .map(Self::Url)
                .map_err(|error| format!("{error}; give `target` or the base URL of a server")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrator_is_the_target_or_a_server() {
        assert_eq!("target".parse(), Ok(NarratorChoice::Target));
        assert!(matches!("http://other:8000".parse(), Ok(NarratorChoice::Url(_))));
        for wrong in ["8000", "nonsense", "Target", "other:8000", "ftp://other", "http://"] {
            let error = wrong.parse::<NarratorChoice>().unwrap_err();
            assert!(error.contains("`target`"), "{error}");
        }
        assert!("other:8000".parse::<NarratorChoice>().unwrap_err().contains("http://other:8000"));
    }
}
