//! The pages that are not reports: the list, the overlay, requests, live figures and the form.

use inferometer_analysis::detail::RequestDetail;
use inferometer_model::RequestId;
use inferometer_report::document::html::{Served, fragment};
use inferometer_report::escape;
use inferometer_report::fmt::{NOTHING, count, counted, number};
use inferometer_store::Stored;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use crate::Entry;
use crate::library::{COLUMNS, Listing, Row};
use crate::overlay::{self, PICKS_MAX, Picked};
use crate::query::{Query, address};
use crate::requests::{OpenRun, PAGE_ROWS, RequestRow, SHOWN, blocks};

/// What all pages share.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Drawn for this answer alone: scripts without it do not run.
    pub(crate) nonce: String,
    /// Whether there is a form that starts runs.
    pub(crate) can_run: bool,
}

/// A link of the navigation: its words and its address.
type Link = (String, String);

impl Frame {
    fn head(&self) -> Markup {
        html! {
            link rel="stylesheet" href="/assets/page.css";
            link rel="stylesheet" href="/assets/ui.css";
            script src="/assets/page.js" defer nonce=(self.nonce) {}
            script src="/assets/chart.js" defer nonce=(self.nonce) {}
            script src="/assets/ui.js" defer nonce=(self.nonce) {}
        }
    }

    fn navigation(&self, links: &[Link], folds: &[(&str, Vec<Link>)]) -> Markup {
        let link = |(words, to): &Link| html! { a href=(to) { (text(words)) } };
        html! {
            nav.site aria-label="Pages" {
                a href="/" { "All runs" }
                @if self.can_run { a href="/start" { "Start a run" } }
                @for one in links { (link(one)) }
                @for (title, links) in folds.iter().filter(|(_, links)| !links.is_empty()) {
                    details {
                        summary { (title) }
                        ul { @for one in links { li { (link(one)) } } }
                    }
                }
            }
        }
    }

    /// A report of something that is stored, with the links that belong to it.
    pub(crate) fn report(&self, found: &Stored, files: &[&str]) -> Served {
        Served {
            head: self.head(),
            navigation: self.navigation(&links(found), &folds(found, files)),
        }
    }

    /// A report of several.
    pub(crate) fn together(&self, query: &Query) -> Served {
        let links = [("Back to the overlay".to_owned(), query.address("/overlay"))];
        Served { head: self.head(), navigation: self.navigation(&links, &[]) }
    }

    fn page(
        &self,
        title: &str,
        links: &[Link],
        folds: &[(&str, Vec<Link>)],
        main: &Markup,
    ) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    link rel="icon" href="data:,";
                    title { (text(title)) " · Inferometer" }
                    (self.head())
                }
                body.compact {
                    a.skip href="#content" { "Skip to the content" }
                    (self.navigation(links, folds))
                    header.banner {
                        div.banner-inner {
                            p.brand { "Inferometer" }
                            // Shown by the script, which makes it work.
                            button #theme type="button" hidden { "Theme: auto" }
                            h1 { (text(title)) }
                        }
                    }
                    div.sheet { main #content tabindex="-1" { (main) } }
                }
            }
        };
        page.into_string()
    }

    /// A message instead of a page.
    pub(crate) fn message(&self, title: &str, message: &str) -> String {
        let main = html! {
            div.notice.note role="note" {
                span.sign aria-hidden="true" { "i" }
                div { p { (PreEscaped(escape::xml_lines(message))) } }
            }
        };
        self.page(title, &[], &[], &main)
    }

    pub(crate) fn login(&self, is_wrong: bool) -> String {
        let main = html! {
            form.stack method="post" action="/login" {
                @if is_wrong { p role="alert" { strong { "This is not the token." } } }
                label { "Token" input type="password" name="token" autocomplete="off" required; }
                button.primary type="submit" { "Open" }
            }
        };
        self.page("A token is needed", &[], &[], &main)
    }

    pub(crate) fn list(
        &self,
        listing: &Listing,
        query: &Query,
        choices: &[(&str, Vec<String>); 2],
    ) -> String {
        let is_shown = |id: &str| listing.rows.iter().any(|row| row.entry.id == id);
        let main = html! {
            form #list method="get" action="/" {
                div.filters {
                    label { "Search" input type="search" name="q" value=(text(query.get("q")))
                        placeholder="Name, model, server, date …"; }
                    @for (key, values) in choices {
                        label { (capital(key)) select name=(key) {
                            option value="" { "All" }
                            @for value in values {
                                option value=(text(value)) selected[query.get(key) == value] { (text(value)) }
                            }
                        } }
                    }
                    button.primary type="submit" { "Filter" }
                    button type="submit" formaction="/overlay" { "Overlay the selected" }
                    a href="/" { "Clear" }
                }
                input type="hidden" name="sort" value=(text(query.sort()));
                div #results {
                    @for picked in query.all("pick").filter(|id| !is_shown(id)) {
                        input type="hidden" name="pick" value=(text(picked));
                    }
                    (list_status(listing))
                    (list_table(listing, query))
                    (paging(listing.page, listing.pages))
                }
            }
        };
        self.page("Stored runs", &[], &[], &main)
    }

    pub(crate) fn overlay(&self, picked: &Picked, query: &Query, problems: &[String]) -> String {
        let to_report = query.address("/together");
        let main = html! {
            @for problem in problems {
                div.notice.doubt role="note" {
                    span.sign aria-hidden="true" { "!" }
                    div { p { (text(problem)) } }
                }
            }
            @if picked.is_empty() {
                p { "Select one to " (PICKS_MAX) " lines of the " a href="/" { "list" } ", then overlay them." }
            } @else {
                ul.picked { @for (entry, results) in picked {
                    li {
                        a href=(view_address(&entry.id)) { (text(&entry.id)) }
                        " " (text(&summary_line(entry, results.len())))
                    }
                } }
                (explorer(&query.address("/api/overlay")))
                @if let Some(table) = overlay::table(picked) { (fragment(&[table])) }
            }
        };
        let links = if picked.is_empty() {
            Vec::new()
        } else {
            vec![("As a report".to_owned(), to_report)]
        };
        let title = match picked.as_slice() {
            [(only, _)] => format!("Explore {}", only.id),
            _ => "Overlay".to_owned(),
        };
        self.page(&title, &links, &[], &main)
    }

    pub(crate) fn requests(&self, found: &Stored, run: &OpenRun, query: &Query) -> String {
        let (rows, found_rows) = run.page(query);
        let pages = found_rows.div_ceil(PAGE_ROWS).max(1);
        let main = html! {
            form #list method="get" action="/requests" {
                input type="hidden" name="id" value=(text(found.id()));
                div.filters {
                    label { "Outcome" select name="outcome" {
                        option value="" { "All" }
                        @for outcome in run.outcomes() {
                            option value=(outcome) selected[query.get("outcome") == outcome] { (outcome) }
                        }
                    } }
                    button.primary type="submit" { "Filter" }
                }
                input type="hidden" name="sort" value=(text(query.sort()));
                div #results {
                    p.status role="status" { (count(found_rows as u64)) " of " (counted(run.rows.len() as u64, "request")) }
                    (request_table(found.id(), &rows, query))
                    (paging(query.page().min(pages), pages))
                }
            }
        };
        self.page(&format!("Requests of {}", found.id()), &links(found), &[], &main)
    }

    pub(crate) fn request(
        &self,
        found: &Stored,
        detail: &RequestDetail<'_>,
        run: &OpenRun,
    ) -> String {
        let number = detail.record.id.0.to_string();
        let pairs = [("id", found.id()), ("request", number.as_str())];
        let neighbour = |number: u64, words: &str| {
            (
                words.to_owned(),
                address("/request", [("id", found.id()), ("request", &number.to_string())]),
            )
        };
        let id = detail.record.id.0;
        let mut links = links(found);
        links.extend(id.checked_sub(1).map(|before| neighbour(before, "Previous request")));
        links.push(neighbour(id + 1, "Next request"));
        let main = html! {
            (explorer(&address("/api/request", pairs)))
            (fragment(&blocks(detail, run)))
            (kept_answer(found, detail.record.id))
        };
        self.page(&format!("Request {number} of {}", found.id()), &links, &[], &main)
    }

    pub(crate) fn live(&self, entry: &Entry, found: &Stored) -> String {
        let source = address("/api/live", [("id", found.id())]);
        let main = html! {
            p { (text(&summary_line(entry, 1))) }
            (live_figures(&source, &view_address(found.id())))
        };
        self.page(&format!("{} is running", found.id()), &[], &folds(found, &[]), &main)
    }

    pub(crate) fn start(&self, is_running: bool, problem: &str) -> String {
        let main = html! {
            @if !problem.is_empty() { p role="alert" { strong { (text(problem)) } } }
            @if is_running {
                p { "A run is going on: " a href="/job" { "follow it" } ". Only one is started at a time." }
            }
            form.stack method="post" action="/start" {
                label { "What" select name="command" {
                    @for (command, words) in COMMANDS { option value=(command) { (words) } }
                } }
                label { "Server" input name="target" placeholder="http://127.0.0.1:8000; empty for the embedded engine"; }
                label { "Suite (its name or file; suites only)" input name="suite" placeholder="quick"; }
                label { "More arguments, as on the command line" input name="more" placeholder="--requests 200 --concurrency 8"; }
                button.primary type="submit" disabled[is_running] { "Start" }
            }
            p.n { "It is started as a process of this program on this machine, and its results are stored in this folder." }
        };
        self.page("Start a run", &[], &[], &main)
    }

    pub(crate) fn job(&self, arguments: &[String]) -> String {
        let main = html! {
            @if arguments.is_empty() {
                p { "Nothing was started yet: " a href="/start" { "start a run" } "." }
            } @else {
                pre.code tabindex="0" role="region" aria-label="Command" {
                    code { "inferometer " (text(&arguments.join(" "))) }
                }
                (live_figures("/api/job", "/"))
                pre.code.lines tabindex="0" role="log" aria-label="Messages" { code {} }
                form method="post" action="/job/stop" { button type="submit" { "Stop: drain and save" } }
            }
        };
        self.page("The run that was started here", &[], &[], &main)
    }
}

/// The commands that the form offers.
pub(crate) const COMMANDS: [(&str, &str); 4] = [
    ("run", "One run"),
    ("suite", "A suite"),
    ("sweep", "A sweep over loads"),
    ("simulate", "A simulation in virtual time"),
];

/// Text from outside: markup and invisible characters become harmless.
fn text(text: &str) -> Markup {
    PreEscaped(escape::xml(text))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn view_address(id: &str) -> String {
    address("/view", [("id", id)])
}

/// The pages about one thing.
fn links(found: &Stored) -> Vec<Link> {
    let id = found.id();
    let mut links = vec![("Report".to_owned(), view_address(id))];
    let explored = match found {
        Stored::Import(_, Some(number)) => format!("{id}/{number}"),
        Stored::Run(_) | Stored::Set(_) | Stored::Import(_, None) => id.to_owned(),
    };
    links.push(("Explore".to_owned(), address("/overlay", [("pick", explored.as_str())])));
    if matches!(found, Stored::Run(_)) {
        links.push(("Requests".to_owned(), address("/requests", [("id", id)])));
    }
    links
}

fn folds(found: &Stored, files: &[&str]) -> [(&'static str, Vec<Link>); 2] {
    let id = found.id();
    let file = |name: &&str| ((*name).to_owned(), address("/files", [("id", id), ("name", name)]));
    let points = match found {
        Stored::Set(set) => set.points().unwrap_or_default(),
        Stored::Run(_) | Stored::Import(..) => Vec::new(),
    };
    let point = |number: &u32| (format!("Run {number}"), view_address(&format!("{id}/{number}")));
    [
        ("Runs of this set", points.iter().map(point).collect()),
        ("Download", files.iter().map(file).collect()),
    ]
}

/// What a thing is, in one line.
fn summary_line(entry: &Entry, results: usize) -> String {
    let results = if results == 1 { String::new() } else { counted(results as u64, "result") };
    let kind = format!("{} {}", entry.kind, entry.name);
    let parts = [kind.trim(), &entry.model, &entry.load, &results, &entry.verdict];
    inferometer_report::fmt::joined(&parts)
}

fn list_status(listing: &Listing) -> Markup {
    html! {
        p.status role="status" {
            @if listing.found == listing.stored { (count(listing.stored as u64)) " stored" }
            @else { (count(listing.found as u64)) " of " (count(listing.stored as u64)) " stored" }
            @if listing.is_partial { "; the folder is still being read" }
        }
    }
}

/// The head of a column that sorts by it, up and down in turn.
fn sort_head(column: &str, title: &str, query: &Query, is_number: bool) -> Markup {
    let sort = query.sort();
    let down = format!("-{column}");
    let order =
        if sort == column { Some("ascending") } else { (sort == down).then_some("descending") };
    let next = if sort == column { &down } else { column };
    let class = is_number.then_some("right");
    html! {
        th scope="col" class=[class] aria-sort=[order] {
            button type="submit" name="sort" value=(next) { (title) }
        }
    }
}

fn list_table(listing: &Listing, query: &Query) -> Markup {
    let is_number = |column: &str| ["ok", "first_token", "output"].contains(&column);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Stored runs" {
            table.list {
                thead { tr {
                    th scope="col" { span.unseen { "Select" } }
                    @for (column, title) in COLUMNS { (sort_head(column, title, query, is_number(column))) }
                } }
                tbody { @for row in &listing.rows { (list_row(row, query)) } }
            }
        }
        @if listing.rows.is_empty() {
            p.empty { "Nothing is found. Make a run with " code { "inferometer run" } ", or change the filter." }
        }
    }
}

fn list_row(row: &Row, query: &Query) -> Markup {
    let entry = &row.entry;
    let is_picked = query.all("pick").any(|id| id == entry.id);
    let mood = match entry.verdict.as_str() {
        "valid" => "good",
        "degraded" => "doubt",
        "invalid" => "bad",
        _ => "note",
    };
    let known = |value: Option<String>| value.unwrap_or_else(|| NOTHING.to_owned());
    let figures = [entry.ok.map(count), entry.ttft_ms.map(number), entry.output_per_s.map(number)];
    html! {
        tr {
            td { input type="checkbox" name="pick" value=(text(&entry.id)) checked[is_picked]
                aria-label={ "Select " (text(&entry.id)) }; }
            th scope="row" {
                a href=(view_address(&entry.id)) { (text(&entry.id)) }
                @if !entry.name.is_empty() { " " span.soft.name { (text(&entry.name)) } }
            }
            td { (text(&entry.kind)) @if entry.simulated { " " span.soft { "simulated" } } }
            td {
                @if !entry.verdict.is_empty() { span class={ "word " (mood) } { (text(&entry.verdict)) } }
                @else { span.soft { (text(&entry.state)) } }
            }
            @for words in [&entry.model, entry.server.strip_prefix("http://").unwrap_or(&entry.server), &entry.load] {
                td.wrap { @if !words.is_empty() {
                    span title=[(60 < words.len()).then(|| text(words))] { (text(words)) }
                } }
            }
            @for ((_, title), figure) in COLUMNS[COLUMNS.len() - figures.len()..].iter().zip(figures) {
                td.right data-title=(title) { (known(figure)) }
            }
        }
    }
}

fn paging(page: usize, pages: usize) -> Markup {
    let button = |to: usize, words: &str, is_there: bool| {
        html! { button type="submit" name="page" value=(to) disabled[!is_there] { (words) } }
    };
    html! {
        @if 1 < pages {
            div.paging role="group" aria-label="Pages of the list" {
                (button(page.saturating_sub(1), "Previous", 1 < page))
                span { "Page " (page) " of " (pages) }
                (button(page + 1, "Next", page < pages))
            }
        }
    }
}

fn request_table(id: &str, rows: &[&RequestRow], query: &Query) -> Markup {
    let columns = [("sent", "Sent s"), ("input", "Input tokens"), ("output", "Output tokens")];
    let cell = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), number);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Requests" {
            table.list {
                thead { tr {
                    (sort_head("request", "Request", query, false))
                    th scope="col" { "Outcome" }
                    @for (column, title) in columns { (sort_head(column, title, query, true)) }
                    @for metric in SHOWN {
                        (sort_head(metric.name, &format!("{} ms", metric.title), query, true))
                    }
                } }
                tbody { @for row in rows { tr {
                    th scope="row" {
                        a href=(address("/request", [("id", id), ("request", &row.request.to_string())])) {
                            (row.request)
                        }
                    }
                    td { (row.outcome) }
                    td.right { (cell(row.sent_ms.map(|ms| ms / 1e3))) }
                    td.right { (count(row.input_tokens)) }
                    td.right { (row.output_tokens.map_or_else(|| NOTHING.to_owned(), count)) }
                    @for ms in row.latencies_ms { td.right { (cell(ms)) } }
                } } }
            }
        }
    }
}

/// What was answered, where the run kept it; each part as the server sent it.
fn kept_answer(found: &Stored, id: RequestId) -> Markup {
    let line = if let Stored::Run(run) = found { run.answer(id) } else { None };
    let answer = line.and_then(|line| serde_json::from_str::<Value>(&line).ok());
    let parts = [
        ("reasoning", "Reasoning"),
        ("content", "Answer"),
        ("calls", "Calls of tools"),
        ("expected", "Expected"),
        ("correct", "Right"),
        ("validity", "Form"),
    ];
    let parts = parts.iter().filter_map(|(key, title)| {
        let shown = answer.as_ref()?.get(key)?;
        let shown = shown.as_str().map_or_else(|| shown.to_string(), str::to_owned);
        Some((*title, shown))
    });
    html! {
        @for (title, shown) in parts {
            h2 { (title) }
            pre.code tabindex="0" role="region" aria-label=(title) { code { (PreEscaped(escape::xml_lines(&shown))) } }
        }
    }
}

/// Where the script draws a chart of the numbers at an address.
fn explorer(source: &str) -> Markup {
    html! {
        section.explorer data-source=(source) aria-label="Interactive chart" {
            noscript { p { "The interactive chart needs a script; the tables and the report do not." } }
        }
    }
}

/// Where the script shows what an event stream reports.
fn live_figures(source: &str, after: &str) -> Markup {
    html! {
        div.live data-source=(source) data-after=(after) {
            p.status role="status" { "Waiting for the first figures …" }
            progress max="1" value="0" aria-label="Share that is done" {}
            dl.cards {}
            noscript { p { "Live figures need a script." } }
        }
    }
}
