//! A table as a list of columns, each with the function that makes its cells.

use super::{Cell, Column, Table};

type MakeCell<'a, T> = Box<dyn Fn(&T) -> Cell + 'a>;

/// Columns of a table whose rows are values of `T`.
pub struct Columns<'a, T>(Vec<(Column, MakeCell<'a, T>)>);

impl<T> std::fmt::Debug for Columns<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(column, _)| column)).finish()
    }
}

impl<'a, T> Columns<'a, T> {
    /// Begins with a column of texts.
    pub fn new(title: impl Into<String>, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        Self(Vec::new()).left(title, cell)
    }

    /// Begins with a column of numbers.
    pub fn number(title: impl Into<String>, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        Self(Vec::new()).right(title, cell)
    }

    /// Adds a column that is aligned to the left.
    #[must_use]
    pub fn left(mut self, title: impl Into<String>, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.0.push((Column::left(title), Box::new(cell)));
        self
    }

    /// Adds a column that is aligned to the right, as numbers are.
    #[must_use]
    pub fn right(mut self, title: impl Into<String>, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        self.0.push((Column::right(title), Box::new(cell)));
        self
    }

    /// Removes the column that was added last unless `keep` is set.
    #[must_use]
    pub fn only_if(mut self, keep: bool) -> Self {
        if !keep {
            self.0.pop();
        }
        self
    }

    /// The table with one row for each item.
    pub fn table(
        self,
        id: impl Into<String>,
        caption: impl Into<String>,
        items: impl IntoIterator<Item = T>,
    ) -> Table {
        let (columns, cells): (Vec<Column>, Vec<MakeCell<'a, T>>) = self.0.into_iter().unzip();
        let row = |item: T| cells.iter().map(|cell| cell(&item)).collect();
        let rows = items.into_iter().map(row).collect();
        Table { id: id.into(), caption: caption.into(), columns, rows, notes: Vec::new() }
    }
}
