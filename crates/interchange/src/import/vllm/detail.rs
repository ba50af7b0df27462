//! What `--save-detailed` adds: lists with one value for each request.

use inferometer_analysis::sheet::{Sheet, SheetRequest, further};
use serde::de::{Deserialize, Deserializer, SeqAccess};

use super::field::{self, Field, Scale, Written};
use super::loose::{self, Loose};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    InputTokens,
    OutputTokens,
    Ttft,
    Gaps,
    E2e,
    Start,
    Queued,
    Text,
    Error,
    /// Not of requests: shares of drafts that were accepted.
    Positions,
}

impl Column {
    pub(crate) fn named(key: &str) -> Option<Self> {
        Some(match key {
            "input_lens" => Self::InputTokens,
            "output_lens" => Self::OutputTokens,
            "ttfts" => Self::Ttft,
            "itls" => Self::Gaps,
            "latencies" => Self::E2e,
            "start_times" => Self::Start,
            "queue_times" => Self::Queued,
            "generated_texts" => Self::Text,
            "errors" => Self::Error,
            further::POSITIONS => Self::Positions,
            _ => return None,
        })
    }
}

/// A list as it was written; `None` of something else.
#[derive(Debug)]
pub(crate) struct Cells(Option<Vec<Cell>>);

#[derive(Debug)]
pub(crate) enum Cell {
    Number(f64),
    Text(String),
    Numbers(Vec<f64>),
    Other,
}

/// Puts the lists into the sheet. Those that do not fit the first of them are left out and noted.
pub(crate) fn take(result: &mut Sheet, line: u32, columns: Vec<(String, Column, Cells)>) {
    let mut requests: Option<Vec<SheetRequest>> = None;
    for (key, column, cells) in columns {
        let Some(cells) = cells.0 else {
            field::note(result, line, &format!("{key} is not a list"));
            continue;
        };
        if column == Column::Positions {
            take_positions(result, line, &key, cells);
            continue;
        }
        let rows = requests.get_or_insert_with(|| vec![SheetRequest::default(); cells.len()]);
        if rows.len() != cells.len() {
            let (here, others) = (cells.len(), rows.len());
            let what = format!("{key} has {here} values, and the lists before it have {others}");
            field::note(result, line, &what);
            continue;
        }
        let misfits =
            rows.iter_mut().zip(cells).filter_map(|(row, cell)| column.set(row, cell).err());
        match misfits.count() {
            0 => {}
            count => field::note(result, line, &format!("{key}: {count} values are none")),
        }
    }
    for request in requests.iter_mut().flatten() {
        forget_zeros(request);
    }
    result.requests = requests;
}

fn take_positions(result: &mut Sheet, line: u32, key: &str, cells: Vec<Cell>) {
    for (position, cell) in cells.into_iter().enumerate() {
        let field = Field::Further(further::position_key(position), Scale::AsWritten);
        if let Err(reason) = field::set(result, field, &cell.written()) {
            field::note(result, line, &format!("{key}, position {position}, {reason}"));
            return;
        }
    }
}

/// The tool writes zeros of a request that failed. No first token came in no time.
fn forget_zeros(request: &mut SheetRequest) {
    request.ttft_s = request.ttft_s.filter(|seconds| 0.0 < *seconds);
    request.e2e_s = request.e2e_s.filter(|seconds| 0.0 < *seconds);
    if request.error.as_ref().is_some_and(|error| !error.is_empty()) {
        request.output_tokens = request.output_tokens.filter(|tokens| 0 < *tokens);
    }
}

impl Column {
    fn set(self, row: &mut SheetRequest, cell: Cell) -> Result<(), String> {
        match (self, cell) {
            (Self::Gaps, Cell::Numbers(gaps_s)) if gaps_s.iter().all(|gap| 0.0 <= *gap) => {
                row.gaps_s = gaps_s;
            }
            (Self::Text, Cell::Text(text)) => row.text = Some(text),
            (Self::Error, Cell::Text(error)) => row.error = Some(error),
            (Self::InputTokens, cell) => row.input_tokens = Some(field::count(&cell.written())?),
            (Self::OutputTokens, cell) => row.output_tokens = Some(field::count(&cell.written())?),
            (Self::Ttft, cell) => row.ttft_s = Some(field::figure(&cell.written())?),
            (Self::E2e, cell) => row.e2e_s = Some(field::figure(&cell.written())?),
            (Self::Start, cell) => row.start_s = Some(field::figure(&cell.written())?),
            (Self::Queued, cell) => row.queued_s = Some(field::figure(&cell.written())?),
            (Self::Gaps | Self::Text | Self::Error | Self::Positions, _) => {
                return Err("is of another kind".to_owned());
            }
        }
        Ok(())
    }
}

impl Cell {
    fn written(self) -> Written {
        match self {
            Self::Number(number) => Written::Number(number),
            Self::Text(text) => Written::Text(text),
            Self::Numbers(_) | Self::Other => Written::Other,
        }
    }
}

impl Loose for Cells {
    fn other() -> Self {
        Self(None)
    }

    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut cells = Vec::new();
        while let Some(cell) = list.next_element()? {
            cells.push(cell);
        }
        Ok(Self(Some(cells)))
    }
}

impl Loose for Cell {
    fn other() -> Self {
        Self::Other
    }

    fn number(number: f64) -> Self {
        Self::Number(number)
    }

    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut numbers = Vec::new();
        let mut are_numbers = true;
        while let Some(Number(number)) = list.next_element()? {
            are_numbers &= number.is_some();
            numbers.extend(number);
        }
        Ok(if are_numbers { Self::Numbers(numbers) } else { Self::Other })
    }
}

struct Number(Option<f64>);

impl Loose for Number {
    fn other() -> Self {
        Self(None)
    }

    fn number(number: f64) -> Self {
        Self(Some(number))
    }
}

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        loose::deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        loose::deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        loose::deserialize(deserializer)
    }
}
