//! `inferometer explain`: what a metric or a word means, here and elsewhere.

use std::process::ExitCode;

use inferometer_analysis::Topic;
use inferometer_report::{escape, explain};

use super::style;
use crate::arguments::ExplainArguments;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<ExitCode, Failure> {
    // Words of one name need no quotes: `explain sweet spot`.
    let asked = arguments.words.join(" ");
    if arguments.words.is_empty() {
        let json = || format!("{:#}\n", explain::list_document());
        output::result(&if arguments.json { json() } else { explain::list(style()) })?;
        return Ok(ExitCode::SUCCESS);
    }
    let topic = Topic::of(&asked).map_err(|unknown| {
        Failure::usage(unknown.to_string()).hint("inferometer explain lists all names")
    })?;
    output::result(&if arguments.json {
        format!("{:#}\n", explain::document(&asked, &topic))
    } else {
        explain::page(&escape::terminal_line(&asked, ASKED_MAX), &topic, style())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Characters of what was typed, on the page.
const ASKED_MAX: usize = 60;
