//! A cell in virtual time: one engine for all its loads.

use inferometer_model::campaign::Point;

use super::cell::{Cell, not_measured};
use super::unfit;
use crate::failure::{Exit, Failure};
use crate::set::was_cut;
use crate::simulation::VirtualEngine;
use crate::simulator::Simulator;

/// `Some` is the signal that stopped it.
pub(super) fn play(cell: &Cell<'_>, left: &[Point]) -> Result<Option<Exit>, Failure> {
    let Some(last) = left.last() else { return Ok(None) };
    let engine = cell.spec(last)?.engine;
    if let Some(failure) = unfit::reason(&engine)? {
        return cell.failed(left, &failure).map(|()| None);
    }
    let engine = VirtualEngine::of(&engine)?;
    let mut simulator = Simulator { engine, session: cell.hall.measuring };
    for point in cell.deployment.points.iter().filter(|point| point.number <= last.number) {
        let played = if left.contains(point) {
            record(cell, &mut simulator, point)?
        } else {
            play_again(cell, &mut simulator, point)?
        };
        if played.is_some() {
            return Ok(played);
        }
    }
    Ok(None)
}

fn record(
    cell: &Cell<'_>,
    simulator: &mut Simulator<'_>,
    point: &Point,
) -> Result<Option<Exit>, Failure> {
    let spec = cell.spec(point)?;
    let ready = match simulator.make_ready(&spec) {
        Ok(Ok(ready)) => ready,
        Ok(Err(exit)) => return Ok(Some(exit)),
        Err(failure) if failure.is_internal() => return Err(failure),
        Err(failure) => return cell.failed(&[*point], &not_measured(&failure)).map(|()| None),
    };
    let summary = simulator.record(ready, cell.place(point))?.measured.summary;
    if was_cut(&summary) {
        let signal = cell.hall.session.interruption.exit();
        return Ok(Some(signal.unwrap_or(Exit::Interrupted)));
    }
    cell.measured(point, summary);
    Ok(None)
}

/// Plays what is known already without recording it: an engine follows from what it was asked, so that
/// a matrix which was stopped comes to the same bytes.
fn play_again(
    cell: &Cell<'_>,
    simulator: &mut Simulator<'_>,
    point: &Point,
) -> Result<Option<Exit>, Failure> {
    match simulator.make_ready(&cell.spec(point)?) {
        Ok(Ok(ready)) => simulator.tell(ready).map(|_told| None),
        Ok(Err(exit)) => Ok(Some(exit)),
        Err(failure) if failure.is_internal() => Err(failure),
        // It came to nothing before, too.
        Err(_) => Ok(None),
    }
}
