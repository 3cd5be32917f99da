use std::sync::Arc;

use crate::error::Result;
use crate::sstable::table::{Table, TableIterator};
use crate::{Comparator, InternalKey, InternalKeyRange, InternalKeyRef, LSMIterator};

/// Iterates over the tables of a level, one after the other: they are in the order of their
/// keys and do not overlap (Level 1+). Only the table that it stands in is read, so that the
/// cost of a range does not grow with the number of tables.
pub(crate) struct LevelIterator<'a> {
	tables: Vec<&'a Table>,
	range: Arc<InternalKeyRange>,
	cmp: Arc<dyn Comparator>,
	/// The table it stands in, and its place among the tables.
	current: Option<(usize, TableIterator<'a>)>,
}

impl<'a> LevelIterator<'a> {
	pub(crate) fn new(
		tables: Vec<&'a Table>,
		range: Arc<InternalKeyRange>,
		cmp: Arc<dyn Comparator>,
	) -> Self {
		Self {
			tables,
			range,
			cmp,
			current: None,
		}
	}

	/// Takes the table at this place, if there is one, and positions in it.
	fn enter(
		&mut self,
		place: usize,
		position: impl FnOnce(&mut TableIterator<'a>) -> Result<bool>,
	) -> Result<bool> {
		self.current = None;
		let Some(table) = self.tables.get(place) else {
			return Ok(false);
		};
		let range = (*self.range).clone();
		let mut entries = table.iter_with_comparator(Some(range), Arc::clone(&self.cmp))?;
		let found = position(&mut entries)?;
		self.current = Some((place, entries));
		Ok(found)
	}

	/// Goes on to the first entry of a later table where the current one has no more.
	fn settle_forward(&mut self) -> Result<bool> {
		while let Some((place, entries)) = &self.current {
			if entries.valid() {
				return Ok(true);
			}
			let next = place + 1;
			self.enter(next, LSMIterator::seek_first)?;
		}
		Ok(false)
	}

	/// Goes back to the last entry of an earlier table where the current one has no more.
	fn settle_backward(&mut self) -> Result<bool> {
		while let Some((place, entries)) = &self.current {
			if entries.valid() {
				return Ok(true);
			}
			match place.checked_sub(1) {
				Some(previous) => self.enter(previous, LSMIterator::seek_last)?,
				None => break,
			};
		}
		self.current = None;
		Ok(false)
	}
}

impl LSMIterator for LevelIterator<'_> {
	fn seek(&mut self, target: &[u8]) -> Result<bool> {
		let user_key = InternalKey::user_key_from_encoded(target);
		let place = self.tables.partition_point(|table| table.ends_before(user_key));
		self.enter(place, |entries| entries.seek(target))?;
		self.settle_forward()
	}

	fn seek_first(&mut self) -> Result<bool> {
		self.enter(0, LSMIterator::seek_first)?;
		self.settle_forward()
	}

	fn seek_last(&mut self) -> Result<bool> {
		self.enter(self.tables.len().saturating_sub(1), LSMIterator::seek_last)?;
		self.settle_backward()
	}

	fn next(&mut self) -> Result<bool> {
		if let Some((_, entries)) = &mut self.current {
			entries.next()?;
		}
		self.settle_forward()
	}

	fn prev(&mut self) -> Result<bool> {
		if let Some((_, entries)) = &mut self.current {
			entries.prev()?;
		}
		self.settle_backward()
	}

	fn valid(&self) -> bool {
		self.current.as_ref().is_some_and(|(_, entries)| entries.valid())
	}

	fn key(&self) -> InternalKeyRef<'_> {
		let (_, entries) = self.current.as_ref().expect("a valid position");
		entries.key()
	}

	fn value_encoded(&self) -> Result<&[u8]> {
		let (_, entries) = self.current.as_ref().expect("a valid position");
		entries.value_encoded()
	}
}
