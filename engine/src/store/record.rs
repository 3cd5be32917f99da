//! Records whose fields are the fields of a struct. The fields are listed once, for reading and for writing.

use std::sync::Arc;

use surrealdb::types::{Object as RecordObject, Value as Record};

use super::error::Result;
use super::{DatabaseReader, convert};

/// A value in a field of a record.
pub trait FieldValue: Sized {
    fn read(record: &Record, field: &str) -> Result<Self>;

    /// Returns the stored form of the value.
    fn stored(&self) -> Record;
}

/// Implements [`FieldValue`] for a type.
macro_rules! field_value {
    ($type:ty, |$record:ident, $field:ident| $read:expr, |$value:ident| $stored:expr) => {
        impl $crate::store::record::FieldValue for $type {
            fn read($record: &surrealdb::types::Value, $field: &str) -> $crate::store::Result<$type> {
                $read
            }

            fn stored(&self) -> surrealdb::types::Value {
                let $value = self;
                $stored
            }
        }
    };
}

field_value!(i64, |record, field| convert::int_field(record, field), |number| convert::integer(*number));
field_value!(u64, |record, field| convert::unsigned_field(record, field), |number| convert::integer(*number));
field_value!(bool, |record, field| Ok(convert::bool_field(record, field)), |flag| Record::Bool(*flag));
field_value!(String, |record, field| Ok(convert::text_field(record, field)?.to_owned()), |text| convert::text(text));
field_value!(Arc<str>, |record, field| Ok(convert::text_field(record, field)?.into()), |text| convert::text(text));

/// A value that is missing or of another type is read as `None`.
impl<T: FieldValue> FieldValue for Option<T> {
    fn read(record: &Record, field: &str) -> Result<Option<T>> {
        Ok(T::read(record, field).ok())
    }

    fn stored(&self) -> Record {
        self.as_ref().map_or(Record::None, T::stored)
    }
}

/// A struct whose fields are stored in the fields of a record.
pub trait StoredRecord: Sized {
    /// The kind of the record in errors, such as `key`. `None` if errors do not name the record.
    const KIND: Option<&'static str> = None;

    fn read_fields(record: &Record) -> Result<Self>;

    /// Returns the fields of the record without its id.
    fn fields(&self) -> RecordObject;

    /// Returns the stored form of the record, with this id.
    fn with_id(&self, id: Record) -> Record {
        let mut fields = self.fields();
        fields.insert("id", id);
        Record::Object(fields)
    }

    fn read(record: &Record) -> Result<Self> {
        match Self::KIND {
            Some(kind) => convert::named(kind, record, || Self::read_fields(record)),
            None => Self::read_fields(record),
        }
    }
}

/// The name of a field in the database, which is the name in the struct unless another name is given.
macro_rules! stored_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}

/// Implements [`StoredRecord`] for a struct. The field in brackets is the id of the record. Queries must return the id
/// as `key`. The fields after `reads` are only read, because other statements write these fields.
macro_rules! stored_record {
    (
        $type:ident $(as $kind:literal)? [$($id:ident)?]
        { $($field:ident $(= $name:literal)?),+ } $(reads { $($read:ident),+ })?
    ) => {
        impl $crate::store::record::StoredRecord for $type {
            $(const KIND: Option<&'static str> = Some($kind);)?

            fn read_fields(record: &surrealdb::types::Value) -> $crate::store::Result<$type> {
                use $crate::store::record::{FieldValue, stored_name};
                Ok($type {
                    $($id: FieldValue::read(record, "key")?,)?
                    $($field: FieldValue::read(record, stored_name!($field $($name)?))?,)+
                    $($($read: FieldValue::read(record, stringify!($read))?,)+)?
                })
            }

            fn fields(&self) -> surrealdb::types::Object {
                use $crate::store::record::{FieldValue, stored_name};
                let fields = [$((stored_name!($field $($name)?), FieldValue::stored(&self.$field))),+];
                $crate::store::convert::fields(fields)
            }
        }
    };
}
pub(super) use {field_value, stored_name, stored_record};

impl DatabaseReader {
    /// Runs a statement, and reads each record that it returns.
    pub(super) async fn read_all<T, const N: usize>(
        &self,
        statement: &str,
        values: [(&str, Record); N],
        read: impl FnMut(&Record) -> Result<T>,
    ) -> Result<Vec<T>> {
        let found = self.query(statement, values).await?;
        convert::list(found.first())?.map(read).collect()
    }

    /// Returns the record of a table with this id.
    pub(super) async fn read_record<T: StoredRecord>(&self, table: &str, id: &str) -> Result<Option<T>> {
        let values = [("id", convert::record_id(table, id))];
        self.read_first("SELECT *, record::id(id) AS key FROM $id", values, T::read).await
    }

    /// Reads all records of a statement in pages of `limit`. The statement must contain `LIMIT $limit START $start`.
    pub(super) async fn read_pages<T>(
        &self,
        statement: &str,
        limit: usize,
        mut read: impl FnMut(&Record) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        loop {
            let values = [("limit", convert::integer(limit)), ("start", convert::integer(all.len()))];
            let page = self.read_all(statement, values, &mut read).await?;
            let is_last = page.len() < limit;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Runs a statement, and reads the first record that it returns.
    pub(super) async fn read_first<T, const N: usize>(
        &self,
        statement: &str,
        values: [(&str, Record); N],
        read: impl FnOnce(&Record) -> Result<T>,
    ) -> Result<Option<T>> {
        let found = self.query(statement, values).await?;
        convert::list(found.first())?.next().map(read).transpose()
    }
}
