//! What the file of a result is called, by the rule of that tool.

use inferometer_analysis::sheet::SheetRate;

use super::Ramp;

/// What a file's name is made of.
#[derive(Clone, Copy, Debug)]
pub struct FileName<'a> {
    /// The label, or without one the backend.
    pub label: &'a str,
    pub rate: SheetRate,
    pub ramp: Option<&'a Ramp>,
    pub max_concurrency: Option<u32>,
    pub model: &'a str,
    /// As [`date`] gives it.
    pub date: &'a str,
}

impl FileName<'_> {
    /// Without a folder: of names that hold one, only the last part is taken. What is not known
    /// leaves no gap.
    pub fn file_name(&self) -> String {
        let load = match (self.ramp, self.rate) {
            (Some(ramp), _) => {
                let Ramp { strategy, start_rps, end_rps } = ramp;
                format!("ramp-up-{strategy}-{start_rps}qps-{end_rps}qps")
            }
            (None, SheetRate::PerSecond(per_s)) => format!("{per_s:?}qps"),
            (None, SheetRate::Unlimited) => "infqps".to_owned(),
        };
        let cap = self.max_concurrency.map(|cap| format!("concurrency{cap}")).unwrap_or_default();
        let (label, model, date) = (plain(self.label), plain(self.model), plain(self.date));
        let mut parts = vec![label, load, cap, model, date];
        parts.retain(|part| !part.is_empty());
        format!("{}.json", parts.join("-"))
    }
}

/// Names come from files and servers: none may lead out of a folder or into a terminal, and a blank
/// would end a name in a shell.
fn plain(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    last.chars().map(|c| if c.is_control() || c.is_whitespace() { '_' } else { c }).collect()
}

/// `20260102-030405` of `2026-01-02T03:04:05Z`; any other text stays as it is.
pub fn date(started: &str) -> String {
    let is_moment = started.get(..19).is_some_and(|moment| {
        moment.bytes().zip(*b"0000-00-00T00:00:00").all(|(found, form)| match form {
            b'0' => found.is_ascii_digit(),
            mark => found == mark,
        })
    });
    if !is_moment {
        return started.to_owned();
    }
    let moment = started[..19].chars().filter_map(|c| match c {
        'T' => Some('-'),
        '-' | ':' => None,
        digit => Some(digit),
    });
    moment.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> FileName<'static> {
        FileName {
            label: "openai-chat",
            rate: SheetRate::PerSecond(10.0),
            ramp: None,
            max_concurrency: None,
            model: "mistralai/Mistral-7B",
            date: "20260102-030405",
        }
    }

    #[test]
    fn a_name_says_load_and_model() {
        assert_eq!(name().file_name(), "openai-chat-10.0qps-Mistral-7B-20260102-030405.json");
        let capped = FileName { rate: SheetRate::Unlimited, max_concurrency: Some(8), ..name() };
        assert_eq!(
            capped.file_name(),
            "openai-chat-infqps-concurrency8-Mistral-7B-20260102-030405.json"
        );
        let ramp = Ramp { strategy: "linear".to_owned(), start_rps: 1, end_rps: 9 };
        assert_eq!(
            FileName { ramp: Some(&ramp), ..name() }.file_name(),
            "openai-chat-ramp-up-linear-1qps-9qps-Mistral-7B-20260102-030405.json"
        );
    }

    #[test]
    fn no_name_leads_out_of_its_folder() {
        let name = FileName { label: "../../etc", model: "a\u{1b}[2J/b\n", ..name() };
        assert_eq!(name.file_name(), "etc-10.0qps-b_-20260102-030405.json");
    }

    #[test]
    fn blanks_are_filled_and_what_is_missing_leaves_no_gap() {
        let bare = FileName { label: "configuration 1", model: "", date: "", ..name() };
        assert_eq!(bare.file_name(), "configuration_1-10.0qps.json");
    }

    #[test]
    fn moments_are_written_as_that_tool_writes_them() {
        assert_eq!(date("2026-01-02T03:04:05.678Z"), "20260102-030405");
        assert_eq!(date("20250424-225517"), "20250424-225517");
        assert_eq!(date("yesterday, more or less"), "yesterday, more or less");
    }
}
