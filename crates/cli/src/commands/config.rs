//! `inferometer config show`: which values are set, and by what.

use std::process::ExitCode;

use inferometer_report::document::terminal::table;
use inferometer_report::document::{Cell, Columns, Table, plain};
use inferometer_report::terminal::Style;
use serde_json::json;

use crate::arguments::{ConfigArguments, ConfigCommand};
use crate::experiment::config::{self, Setting};
use crate::failure::Result;
use crate::output;

pub(crate) fn run(arguments: &ConfigArguments) -> Result<ExitCode> {
    let ConfigCommand::Show(typed) = &arguments.what;
    let (settings, files) = config::settings(&typed.experiment)?;
    for warning in config::misspelt(std::env::vars_os()) {
        output::talk(&warning);
    }
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    if typed.json {
        return output::json(
            &json!({ "schema": "inferometer.config/1", "settings": settings, "files": files }),
        );
    }
    let found = match &files[..] {
        [] if config::is_off() => config::IGNORED.to_owned(),
        [] => "no inferometer.toml here or above, and no config.toml of the user".to_owned(),
        files => format!("files, the lowest first: {}", files.join(", ")),
    };
    if settings.is_empty() {
        output::talk(&format!("nothing is set: all values are defaults; {found}"));
        return Ok(ExitCode::SUCCESS);
    }
    let shown = Columns::new("key", |setting: &Setting| Cell::text(&setting.key))
        .left("value", |setting| Cell::text(config::text(&setting.value)))
        .left("from", |setting| Cell::text(&setting.from))
        .table("", "", settings);
    output::result(&table(&Table { notes: vec![plain(found)], ..shown }, Style::Plain))
}
