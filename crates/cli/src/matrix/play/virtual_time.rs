//! A cell in virtual time: one engine for all its loads.

use inferometer_model::campaign::Point;

use super::cell::{Cell, not_measured};
use super::unfit;
use crate::failure::{Exit, Failure};
use crate::set::was_cut;
use crate::simulation::VirtualEngine;
use crate::simulator::Simulator;

pub(super) fn play(cell: &Cell<'_>, left: &[Point]) -> Result<(), Failure> {
    let Some(last) = left.last() else { return Ok(()) };
    let engine = cell.spec(last)?.engine;
    if let Some(failure) = unfit::reason(&engine)? {
        return cell.failed(left, &failure);
    }
    let engine = VirtualEngine::new(&engine)?;
    let mut simulator = Simulator { engine, session: cell.hall.measuring };
    for point in cell.deployment.points.iter().filter(|point| point.number <= last.number) {
        if left.contains(point) {
            record(cell, &mut simulator, point)?;
        } else {
            play_again(cell, &mut simulator, point)?;
        }
    }
    Ok(())
}

fn record(cell: &Cell<'_>, simulator: &mut Simulator<'_>, point: &Point) -> Result<(), Failure> {
    let spec = cell.spec(point)?;
    let ready = match simulator.make_ready(&spec) {
        Ok(ready) => ready,
        Err(failure) if failure.is_our_own() => return Err(failure),
        Err(failure) => return cell.failed(&[*point], &not_measured(&failure)),
    };
    let summary = simulator.record(ready, cell.place(point))?.measured.summary;
    if was_cut(&summary) {
        cell.hall.session.interruption.check()?;
        return Err(Failure::interrupted(Exit::Interrupted));
    }
    cell.measured(point, summary);
    Ok(())
}

/// Plays a stored run again without recording it: the state of an engine follows from its requests,
/// so that a resumed matrix gives the same bytes.
fn play_again(
    cell: &Cell<'_>,
    simulator: &mut Simulator<'_>,
    point: &Point,
) -> Result<(), Failure> {
    match simulator.make_ready(&cell.spec(point)?) {
        Ok(ready) => simulator.summarize(ready).map(drop),
        Err(failure) if failure.is_our_own() => Err(failure),
        // It failed before, too.
        Err(_) => Ok(()),
    }
}
