//! What is exported: finished runs of ours with all that is stored of them, and imported results.

use inferometer_analysis::Summary;
use inferometer_analysis::definitions::vllm::VllmAsked;
use inferometer_analysis::sheet::Sheet;
use inferometer_model::Observations;
use inferometer_store::{RunDirectory, RunStore, Stored};

use crate::commands::report::stored::Source;
use crate::failure::Failure;
use crate::{imports, sheets};

pub(super) enum Subject {
    Run(OwnRun),
    Foreign(Box<Sheet>),
}

pub(super) struct OwnRun {
    directory: RunDirectory,
    pub(super) summary: Box<Summary>,
    configuration: String,
}

/// All that is named, in that order; of a set its finished runs. `NAME=RUN` names a configuration.
pub(super) fn read(
    store: &RunStore,
    names: &[String],
    talk: impl Fn(&str),
) -> Result<Vec<Subject>, Failure> {
    let mut subjects = Vec::new();
    for typed in names {
        let (configuration, name) = sheets::named(typed);
        let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
        let mut of_one = of_stored(&found, &talk)?;
        if let Some(configuration) = configuration {
            sheets::name_all(of_one.iter_mut().map(Subject::configuration), configuration);
        }
        subjects.append(&mut of_one);
    }
    Ok(subjects)
}

fn of_stored(found: &Stored, talk: impl Fn(&str)) -> Result<Vec<Subject>, Failure> {
    if let Stored::Import(import, number) = found {
        let sheets = imports::sheets(import, *number)?.into_iter();
        return Ok(sheets.map(|sheet| Subject::Foreign(Box::new(sheet))).collect());
    }
    Ok(match Source::read(found, talk)? {
        Source::Run { directory, summary } => {
            vec![Subject::Run(OwnRun { directory, summary, configuration: String::new() })]
        }
        Source::Set { set, summary, points } => points
            .into_iter()
            .map(|result| {
                let condition = summary.conditions.get(result.point.condition as usize);
                Subject::Run(OwnRun {
                    directory: set.point(result.point.number),
                    summary: Box::new(result.summary),
                    configuration: condition.map(|found| found.name.clone()).unwrap_or_default(),
                })
            })
            .collect(),
    })
}

impl Subject {
    const fn configuration(&mut self) -> &mut String {
        match self {
            Self::Run(run) => &mut run.configuration,
            Self::Foreign(sheet) => &mut sheet.configuration,
        }
    }

    /// By our own definitions, or by those of the tool that an import came from.
    pub(super) fn sheet(&self) -> Sheet {
        match self {
            Self::Run(run) => run.named(Sheet::of(&run.summary)),
            Self::Foreign(sheet) => (**sheet).clone(),
        }
    }

    /// By vLLM's definitions where the run is ours; an import says what it says.
    pub(super) fn vllm_sheet(&self, detail: bool) -> Result<Sheet, Failure> {
        match self {
            Self::Run(run) => {
                let percentiles = ["50", "90", "95", "99"].map(str::to_owned).to_vec();
                let asked = VllmAsked { percentiles, goodput: Vec::new(), detail };
                let sheet = if detail {
                    Sheet::of_vllm_summed(&run.summary, &run.observations()?, &asked)
                } else {
                    Sheet::of_vllm(&run.summary)
                };
                Ok(run.named(sheet))
            }
            Self::Foreign(sheet) => Ok((**sheet).clone()),
        }
    }
}

impl OwnRun {
    #[cfg(feature = "parquet")]
    pub(super) fn id(&self) -> &str {
        self.directory.id()
    }

    /// All records: as much memory as the run has.
    pub(super) fn observations(&self) -> Result<Observations, Failure> {
        let stored = self.directory.read().map_err(|error| Failure::usage(error.to_string()))?;
        Ok(stored.observations)
    }

    fn named(&self, sheet: Sheet) -> Sheet {
        Sheet { configuration: self.configuration.clone(), ..sheet }
    }
}
