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
    Foreign(ForeignResult),
}

/// One result of an import.
pub(super) struct ForeignResult {
    /// `IMPORT/N`, as it may be asked for.
    name: String,
    pub(super) sheet: Box<Sheet>,
}

pub(super) struct OwnRun {
    /// Its id, or `SET/N`.
    name: String,
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
        let numbered = (number.unwrap_or(0)..).zip(sheets);
        let of_import = |(number, sheet): (u32, Sheet)| {
            let name = format!("{}/{number}", import.id());
            Subject::Foreign(ForeignResult { name, sheet: Box::new(sheet) })
        };
        return Ok(numbered.map(of_import).collect());
    }
    Ok(match Source::read(found, talk)? {
        Source::Run { directory, summary } => {
            let name = directory.id().to_owned();
            vec![Subject::Run(OwnRun { name, directory, summary, configuration: String::new() })]
        }
        Source::Set { set, summary, points } => points
            .into_iter()
            .map(|result| {
                // The only one of a set is not told apart by its name.
                let several = Some(&summary.conditions).filter(|all| 1 < all.len());
                let condition = several.and_then(|all| all.get(result.point.condition as usize));
                Subject::Run(OwnRun {
                    name: format!("{}/{}", set.id(), result.point.number),
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
            Self::Foreign(result) => &mut result.sheet.configuration,
        }
    }

    /// What it may be asked for by.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Run(run) => &run.name,
            Self::Foreign(result) => &result.name,
        }
    }

    /// By our own definitions, or by those of the tool that an import came from.
    pub(super) fn sheet(&self) -> Sheet {
        match self {
            Self::Run(run) => run.named(Sheet::of(&run.summary)),
            Self::Foreign(result) => (*result.sheet).clone(),
        }
    }

    /// By vLLM's definitions where the run is ours; an import says what it says.
    pub(super) fn vllm_sheet(&self, detail: bool) -> Result<Sheet, Failure> {
        match self {
            Self::Run(run) => {
                let percentiles = ["90", "95", "99"].map(str::to_owned).to_vec();
                let asked = VllmAsked { percentiles, goodput: Vec::new(), detail };
                let sheet = if detail {
                    Sheet::of_vllm_summed(&run.summary, &run.observations()?, &asked)
                } else {
                    Sheet::of_vllm(&run.summary)
                };
                Ok(run.named(sheet))
            }
            Self::Foreign(result) => Ok((*result.sheet).clone()),
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
