//! What the numbers of the page mean, and what they do not know.

use inferometer_analysis::matrix::{MatrixFigure, TpsBy};

use super::view::View;
use crate::document::{Block, Section, Span, Text};
use crate::pages::frame;

pub(super) fn section(view: View<'_>) -> Section {
    let by = match view.tps_by() {
        TpsBy::Server => {
            "tokens by the server's counters, over the time from before the load until the server was \
             idle again"
        }
        TpsBy::Client => {
            "tokens by what the client saw, for all rows: not every row that was measured has the server's \
             counters, and the two are not mixed"
        }
    };
    let mut lines = vec![
        line("Prompt and Generation TPS", by),
        line(
            "TPS of a request",
            "the tokens of a request over its own time from send to end, mean over requests that ended well",
        ),
        line("Mean latency and TTFT", "from send, mean over requests that ended well"),
        line(
            "Errors",
            "requests that did not end well; such a row keeps its numbers and wins nothing",
        ),
    ];
    if view.has(MatrixFigure::Cost) {
        lines.push(line(
            "Cost",
            "the price of the preset for an hour over the tokens it would generate in an hour at this \
             rate; putting servers up and idle time are not in it",
        ));
    }
    if view.has(MatrixFigure::Energy) {
        lines.push(line(
            "Energy",
            "of all GPUs while the load ran, over the generated tokens; the rest of the machine is not in it",
        ));
    }
    lines.push(line("How surely", certainty(view)));
    lines.push(line(
        "Not known",
        "what other prompts, other versions of the server or another day would change; presets are \
         described by whoever wrote the matrix file",
    ));
    frame::section("method", "What the numbers mean", vec![Block::List(lines)])
}

fn certainty(view: View<'_>) -> &'static str {
    if view.set.asked.runs < 2 {
        "each cell was put up once, so how much a number changes from one start to the next is not \
         known, and no winner is certain; --repeat says"
    } else {
        "intervals are of 95 % between runs, each on a server of its own; a winner is certain only where \
         that holds over all questions of the page together"
    }
}

fn line(label: &str, words: &str) -> Text {
    vec![Span::Strong(format!("{label}:")), Span::Plain(format!(" {words}."))]
}
