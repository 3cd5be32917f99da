use std::fs::File as SysFile;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockWriteGuard};

use crate::bplustree::tree::DiskBPlusTree;
use crate::compaction::{CompactionChoice, CompactionInput, CompactionStrategy};
use crate::error::{BackgroundErrorHandler, Result};
use crate::iter::{BoxedLSMIterator, CompactionIterator};
use crate::levels::{Level, LevelManifest, ManifestChangeSet, ManifestWriter};
use crate::lsm::{cleanup_vlog_and_index, CoreInner};
use crate::memtable::value_in_place;
use crate::snapshot::SnapshotTracker;
use crate::sstable::table::{Table, TableWriter};
use crate::vfs::File;
use crate::vlog::VLog;
use crate::{Comparator, Options as LSMOptions};

/// RAII guard to ensure tables are unhidden if compaction fails
struct HiddenTablesGuard {
	level_manifest: Arc<RwLock<LevelManifest>>,
	table_ids: Vec<u64>,
	committed: bool,
}

impl HiddenTablesGuard {
	fn new(level_manifest: Arc<RwLock<LevelManifest>>, table_ids: &[u64]) -> Self {
		Self {
			level_manifest,
			table_ids: table_ids.to_vec(),
			committed: false,
		}
	}

	fn commit(&mut self) {
		self.committed = true;
	}
}

impl Drop for HiddenTablesGuard {
	fn drop(&mut self) {
		if !self.committed {
			if let Ok(mut levels) = self.level_manifest.write() {
				levels.unhide_tables(&self.table_ids);
			}
		}
	}
}

/// The tables that a compaction has begun to write. Removes them when it is dropped, unless
/// they are to stay.
struct Outputs<'a> {
	opts: &'a LSMOptions,
	ids: Vec<u64>,
	kept: bool,
}

impl<'a> Outputs<'a> {
	fn new(opts: &'a LSMOptions) -> Self {
		Self {
			opts,
			ids: Vec::new(),
			kept: false,
		}
	}

	/// Adds a table, and returns its path.
	fn add(&mut self, id: u64) -> PathBuf {
		self.ids.push(id);
		self.opts.sstable_file_path(id)
	}

	fn keep(&mut self) {
		self.kept = true;
	}
}

impl Drop for Outputs<'_> {
	fn drop(&mut self) {
		if !self.kept {
			for &id in &self.ids {
				let _ = std::fs::remove_file(self.opts.sstable_file_path(id));
			}
		}
	}
}

/// Compaction options
pub(crate) struct CompactionOptions {
	pub(crate) lopts: Arc<LSMOptions>,
	pub(crate) level_manifest: Arc<RwLock<LevelManifest>>,
	pub(crate) manifest_writer: Arc<ManifestWriter>,
	pub(crate) visible_seq_num: Arc<AtomicU64>,
	pub(crate) vlog: Option<Arc<VLog>>,
	pub(crate) error_handler: Arc<BackgroundErrorHandler>,
	/// Snapshot tracker for snapshot-aware compaction.
	///
	/// During compaction, we query this to get the list of active snapshot
	/// sequence numbers. Versions visible to any active snapshot must be
	/// preserved (unless hidden by a newer version in the same visibility boundary).
	pub(crate) snapshot_tracker: SnapshotTracker,
	/// Versioned B+ tree index for cleanup after VLog GC
	pub(crate) versioned_index: Option<Arc<parking_lot::RwLock<DiskBPlusTree>>>,
}

impl CompactionOptions {
	pub(crate) fn from(tree: &CoreInner) -> Self {
		Self {
			lopts: Arc::clone(&tree.opts),
			level_manifest: Arc::clone(&tree.level_manifest),
			manifest_writer: Arc::clone(&tree.manifest_writer),
			visible_seq_num: Arc::clone(&tree.visible_seq_num),
			vlog: tree.vlog.clone(),
			error_handler: Arc::clone(&tree.error_handler),
			snapshot_tracker: tree.snapshot_tracker.clone(),
			versioned_index: tree.versioned_index.clone(),
		}
	}
}

/// Handles the compaction state and operations
pub(crate) struct Compactor {
	pub(crate) options: CompactionOptions,
	pub(crate) strategy: Arc<dyn CompactionStrategy>,
}

impl Compactor {
	pub(crate) fn new(options: CompactionOptions, strategy: Arc<dyn CompactionStrategy>) -> Self {
		Self {
			options,
			strategy,
		}
	}

	/// Makes the compaction that the strategy chooses, if any. Answers whether it moved tables
	/// to a deeper level, after which there may be more to do. One within the last level does
	/// not count: it can be chosen for as long as that level is too large.
	pub(crate) fn compact(&self) -> Result<bool> {
		self.options.manifest_writer.settle(&self.options.level_manifest)?;
		let levels_guard = self.options.level_manifest.write()?;
		let choice = self.strategy.pick_levels(&levels_guard)?;

		match choice {
			CompactionChoice::Merge(input) => {
				self.merge_tables(levels_guard, &input)?;
				Ok(input.target_level > input.source_level)
			}
			CompactionChoice::Skip => Ok(false),
		}
	}

	fn merge_tables(
		&self,
		mut levels: RwLockWriteGuard<'_, LevelManifest>,
		input: &CompactionInput,
	) -> Result<()> {
		// Hide tables that are being merged
		levels.hide_tables(&input.tables_to_merge);

		// Create guard to ensure tables are unhidden on error
		let mut guard = HiddenTablesGuard::new(
			Arc::clone(&self.options.level_manifest),
			&input.tables_to_merge,
		);

		let tables = levels.get_all_tables();
		let to_merge: Vec<_> =
			input.tables_to_merge.iter().filter_map(|&id| tables.get(&id).cloned()).collect();
		// No other compaction runs meanwhile, and nothing else writes into these.
		let below: Vec<_> = levels
			.levels
			.get_levels()
			.iter()
			.skip(input.target_level as usize + 1)
			.cloned()
			.collect();

		// Keep tables alive while iterators borrow from them
		let iterators: Result<Vec<BoxedLSMIterator<'_>>> = to_merge
			.iter()
			// A table that cannot be read must not be left out: it is deleted afterwards.
			.map(|table| table.iter(None).map(|iter| Box::new(iter) as BoxedLSMIterator<'_>))
			.collect();

		// Before a failure is returned: the guard above takes this lock to unhide tables.
		drop(levels);
		let iterators = iterators?;

		// Write merged data. On a disk that is full, what failed must not take room, so the
		// outputs go wherever this returns early.
		let mut outputs = Outputs::new(&self.options.lopts);
		self.write_merged_tables(&mut outputs, iterators, below, input)?;
		let new_tables: Result<Vec<_>> =
			outputs.ids.iter().map(|&id| self.open_table(id)).collect();

		// Update manifest - this will commit the guard on success
		self.update_manifest(input, new_tables?, &mut guard, &mut outputs)?;

		self.cleanup_old_tables(input);

		Ok(())
	}

	/// Writes the merged entries into as many tables as their size needs: none, if nothing is
	/// left of them.
	fn write_merged_tables(
		&self,
		outputs: &mut Outputs<'_>,
		merge_iter: Vec<BoxedLSMIterator<'_>>,
		below: Vec<Arc<Level>>,
		input: &CompactionInput,
	) -> Result<()> {
		// Get active snapshots for snapshot-aware compaction
		// This is a snapshot of the snapshot list at the start of compaction.
		// Any snapshots created during compaction will be handled by the next compaction.
		// The visible number is read first: a snapshot that is not in the list has that
		// number or a higher one.
		let horizon = self.options.visible_seq_num.load(Ordering::Acquire);
		let snapshots = self.options.snapshot_tracker.get_all_snapshots();

		// Create a compaction iterator that filters tombstones and respects snapshots
		let mut comp_iter = CompactionIterator::new(
			merge_iter,
			Arc::clone(&self.options.lopts.internal_comparator) as Arc<dyn Comparator>,
			below.is_empty(),
			self.options.lopts.enable_versioning,
			self.options.lopts.versioned_history_retention_ns,
			Arc::clone(&self.options.lopts.clock),
			snapshots,
		)
		.with_levels_below(below)
		.with_horizon(horizon);

		let mut current: Option<(TableWriter<SysFile>, PathBuf)> = None;
		let mut last_user_key = Vec::new();
		for item in &mut comp_iter {
			let (key, value) = item?;
			// The versions of a key stay in one table, on which lookups rely.
			let full = current.as_ref().is_some_and(|(writer, _)| {
				writer.estimated_file_size() >= self.options.lopts.target_file_size
					&& key.user_key != last_user_key
			});
			if full {
				Self::finish_table(current.take())?;
			}
			if current.is_none() {
				let id = self.options.level_manifest.read()?.next_table_id();
				let path = outputs.add(id);
				let file = SysFile::create(&path)?;
				let opts = Arc::clone(&self.options.lopts);
				current = Some((TableWriter::new(file, id, opts, input.target_level), path));
			}
			if let Some((writer, _)) = &mut current {
				last_user_key.clone_from(&key.user_key);
				let moved = self.moved_value(&value);
				writer.add(key, moved.as_ref().unwrap_or(&value))?;
			}
		}
		Self::finish_table(current)?;

		if !outputs.ids.is_empty() {
			crate::lsm::fsync_directory(self.options.lopts.sstable_dir())?;
		}
		Ok(())
	}

	fn finish_table(table: Option<(TableWriter<SysFile>, PathBuf)>) -> Result<()> {
		let Some((writer, path)) = table else {
			return Ok(());
		};
		writer.finish()?;

		// Durability fix: the SST's data and its directory entry must be
		// durable BEFORE the manifest (fsynced in update_manifest) references
		// this table. Otherwise a power loss after the manifest commit leaves
		// a durable manifest pointing at a zero-byte table, with the merged
		// inputs already deleted (surrealdb/surrealdb#7426).
		crate::vfs::fsync_file(path)?;
		Ok(())
	}

	/// The value that is to stand in the table in the place of a pointer into the value log
	/// of a store that does not separate values any more. One that cannot be read stays
	/// where it is: reading it says so, and compactions go on.
	fn moved_value(&self, value: &[u8]) -> Option<Vec<u8>> {
		if self.options.lopts.enable_vlog {
			return None;
		}
		value_in_place(value, self.options.vlog.as_ref()).unwrap_or_else(|error| {
			log::error!("A value stays in the value log, it cannot be read: {error}");
			None
		})
	}

	fn update_manifest(
		&self,
		input: &CompactionInput,
		new_tables: Vec<Arc<Table>>,
		guard: &mut HiddenTablesGuard,
		outputs: &mut Outputs<'_>,
	) -> Result<()> {
		// Check for table ID collisions before adding the new tables
		for table in &new_tables {
			if input.tables_to_merge.contains(&table.id) {
				outputs.keep();
				return Err(crate::error::Error::TableIDCollision(table.id));
			}
		}

		let mut changeset = ManifestChangeSet::default();

		// Delete old tables
		{
			// Tables that are hidden change their level only here.
			let manifest = self.options.level_manifest.read()?;
			for (level_idx, level) in manifest.levels.get_levels().iter().enumerate() {
				for &table_id in &input.tables_to_merge {
					if level.tables.iter().any(|t| t.id == table_id) {
						changeset.deleted_tables.insert((level_idx as u8, table_id));
					}
				}
			}
		}

		// Add all new tables in the same change
		for table in new_tables {
			changeset.new_tables.push((input.target_level, table));
		}

		let mut min_oldest_vlog = 0;
		let levels = &self.options.level_manifest;
		let written = self.options.manifest_writer.apply(levels, &changeset, || {
			let mut manifest = levels.write()?;
			manifest.apply_changeset(&changeset)?;
			// Unhide tables before committing guard (they'll be removed from manifest anyway)
			manifest.unhide_tables(&input.tables_to_merge);
			min_oldest_vlog = manifest.min_oldest_vlog_file_id();
			Ok(())
		});
		if let Err(failed) = written {
			// Tables that the manifest on the disk may name stay, until that is known.
			if failed.may_be_on_disk {
				outputs.keep();
			}
			let reason = crate::error::BackgroundErrorReason::ManifestWrite;
			self.options.error_handler.set_error(failed.error.clone(), reason);
			return Err(failed.error);
		}

		// Commit guard - tables are now properly handled in manifest
		guard.commit();
		outputs.keep();

		// After successful manifest commit, cleanup obsolete vlog files and stale index entries
		cleanup_vlog_and_index(
			&self.options.lopts,
			&self.options.vlog,
			&self.options.versioned_index,
			min_oldest_vlog,
			(
				self.options.visible_seq_num.load(Ordering::Acquire),
				self.options.snapshot_tracker.first(),
			),
			"compaction",
		);

		Ok(())
	}

	fn cleanup_old_tables(&self, input: &CompactionInput) {
		for &table_id in &input.tables_to_merge {
			let path = self.options.lopts.sstable_file_path(table_id);
			if let Err(e) = std::fs::remove_file(path) {
				// Log error but continue with cleanup
				log::warn!("Failed to remove old table file: {e}");
			}
		}
	}

	fn open_table(&self, table_id: u64) -> Result<Arc<Table>> {
		let file = SysFile::open(self.options.lopts.sstable_file_path(table_id))?;
		let file: Arc<dyn File> = Arc::new(file);
		let file_size = file.size()?;

		Ok(Arc::new(Table::new(table_id, Arc::clone(&self.options.lopts), file, file_size)?))
	}
}
