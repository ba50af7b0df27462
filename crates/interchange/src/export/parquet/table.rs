//! One table: columns that read their cells from a row, and rows that are written in groups.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical,
};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// Rows that are held in memory. Readers work on groups, and like them not too small.
const GROUP_ROWS: usize = 1 << 16;

/// A column's name, and how its cell is read from a row.
pub(super) type Column<Row> = (&'static str, Cell<Row>);

pub(super) enum Cell<Row> {
    Text(fn(&Row) -> Option<&str>),
    Whole(fn(&Row) -> Option<u64>),
    Real(fn(&Row) -> Option<f64>),
    Flag(fn(&Row) -> Option<bool>),
    /// Nanoseconds after 1970, UTC.
    Time(fn(&Row) -> Option<i64>),
}

pub(super) struct Table<W: Write + Send, Row> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column<Row>>,
    group: Vec<Row>,
    written: u64,
}

impl<W: Write + Send, Row> Table<W, Row> {
    pub(super) fn new(file: W, columns: Vec<Column<Row>>) -> Result<Self> {
        let fields = columns.iter().map(|column| field(column).map(Arc::new));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("inferometer").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("inferometer {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { writer, columns, group: Vec::new(), written: 0 })
    }

    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        self.group.push(row);
        if self.group.len() < GROUP_ROWS { Ok(()) } else { self.flush() }
    }

    /// Writes the foot, without which nobody can read the file; how many rows stand above it.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.flush()?;
        self.writer.close()?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<()> {
        if self.group.is_empty() {
            return Ok(());
        }
        let rows = &self.group;
        let mut group = self.writer.next_row_group()?;
        for (_, cell) in &self.columns {
            match *cell {
                Cell::Text(of) => write::<ByteArrayType, _, _>(&mut group, rows, |row| {
                    of(row).map(|text| ByteArray::from(text.as_bytes().to_vec()))
                }),
                Cell::Whole(of) => write::<Int64Type, _, _>(&mut group, rows, |row| {
                    of(row).map(|count| i64::try_from(count).unwrap_or(i64::MAX))
                }),
                Cell::Real(of) => write::<DoubleType, _, _>(&mut group, rows, of),
                Cell::Flag(of) => write::<BoolType, _, _>(&mut group, rows, of),
                Cell::Time(of) => write::<Int64Type, _, _>(&mut group, rows, of),
            }?;
        }
        group.close()?;
        self.written += rows.len() as u64;
        self.group.clear();
        Ok(())
    }
}

/// Every column may be null; a level of one says that a cell is there.
fn write<Of: DataType, W: Write + Send, Row>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    cell: impl Fn(&Row) -> Option<Of::T>,
) -> Result<()> {
    let cells: Vec<Option<Of::T>> = rows.iter().map(cell).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<Of::T> = cells.into_iter().flatten().collect();
    let Some(mut column) = group.next_column()? else {
        return Err(parquet::errors::ParquetError::General(
            "a column beyond the schema".to_owned(),
        ));
    };
    column.typed::<Of>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

fn field<Row>((name, cell): &Column<Row>) -> Result<Type> {
    let (physical, logical) = match cell {
        Cell::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Cell::Whole(_) => (Physical::INT64, None),
        Cell::Real(_) => (Physical::DOUBLE, None),
        Cell::Flag(_) => (Physical::BOOLEAN, None),
        Cell::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_converted_type(ConvertedType::NONE)
        .with_logical_type(logical)
        .build()
}
