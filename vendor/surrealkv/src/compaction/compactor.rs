use std::fs::File as SysFile;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockWriteGuard};

use crate::bplustree::tree::DiskBPlusTree;
use crate::compaction::{CompactionChoice, CompactionInput, CompactionStrategy};
use crate::error::{BackgroundErrorHandler, Result};
use crate::iter::{BoxedLSMIterator, CompactionIterator};
use crate::levels::{LevelManifest, ManifestChangeSet, ManifestWriter};
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

	pub(crate) fn compact(&self) -> Result<()> {
		self.options.manifest_writer.settle(&self.options.level_manifest)?;
		let levels_guard = self.options.level_manifest.write()?;
		let choice = self.strategy.pick_levels(&levels_guard)?;

		match choice {
			CompactionChoice::Merge(input) => self.merge_tables(levels_guard, &input),
			CompactionChoice::Skip => Ok(()),
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

		// Keep tables alive while iterators borrow from them
		let iterators: Result<Vec<BoxedLSMIterator<'_>>> = to_merge
			.iter()
			// A table that cannot be read must not be left out: it is deleted afterwards.
			.map(|table| table.iter(None).map(|iter| Box::new(iter) as BoxedLSMIterator<'_>))
			.collect();

		// Before a failure is returned: the guard above takes this lock to unhide tables.
		drop(levels);
		let iterators = iterators?;

		// Create new table
		let new_table_id = self.options.level_manifest.read().unwrap().next_table_id();
		let new_table_path = self.get_table_path(new_table_id);

		// Write merged data
		let table_created =
			match self.write_merged_table(&new_table_path, new_table_id, iterators, input) {
				Ok(result) => result,
				Err(e) => {
					// Guard will unhide tables on drop. On a disk that is full, what failed
					// must not take room.
					let _ = std::fs::remove_file(&new_table_path);
					return Err(e);
				}
			};

		// Open table only if one was created
		let new_table = if table_created {
			match self.open_table(new_table_id, &new_table_path) {
				Ok(table) => Some(table),
				Err(e) => {
					// Guard will unhide tables on drop
					let _ = std::fs::remove_file(&new_table_path);
					return Err(e);
				}
			}
		} else {
			None
		};

		// Update manifest - this will commit the guard on success
		self.update_manifest(input, new_table, &mut guard)?;

		self.cleanup_old_tables(input);

		Ok(())
	}

	/// Returns true if a table file was created and finished, false otherwise
	fn write_merged_table(
		&self,
		path: &Path,
		table_id: u64,
		merge_iter: Vec<BoxedLSMIterator<'_>>,
		input: &CompactionInput,
	) -> Result<bool> {
		let file = SysFile::create(path)?;
		let mut writer =
			TableWriter::new(file, table_id, Arc::clone(&self.options.lopts), input.target_level);

		// Get active snapshots for snapshot-aware compaction
		// This is a snapshot of the snapshot list at the start of compaction.
		// Any snapshots created during compaction will be handled by the next compaction.
		let snapshots = self.options.snapshot_tracker.get_all_snapshots();

		// Create a compaction iterator that filters tombstones and respects snapshots
		let max_level = self.options.lopts.level_count - 1;
		let is_bottom_level = input.target_level >= max_level;
		let mut comp_iter = CompactionIterator::new(
			merge_iter,
			Arc::clone(&self.options.lopts.internal_comparator) as Arc<dyn Comparator>,
			is_bottom_level,
			self.options.lopts.enable_versioning,
			self.options.lopts.versioned_history_retention_ns,
			Arc::clone(&self.options.lopts.clock),
			snapshots,
		);

		let mut entries = 0;
		for item in &mut comp_iter {
			let (key, value) = item?;
			let moved = self.moved_value(&value);
			writer.add(key, moved.as_ref().unwrap_or(&value))?;
			entries += 1;
		}

		if entries == 0 {
			// No entries - drop writer and remove empty file
			drop(writer);
			let _ = std::fs::remove_file(path);
			return Ok(false);
		}

		writer.finish()?;

		// Durability fix: the SST's data and its directory entry must be
		// durable BEFORE the manifest (fsynced in update_manifest) references
		// this table. Otherwise a power loss after the manifest commit leaves
		// a durable manifest pointing at a zero-byte table, with the merged
		// inputs already deleted (surrealdb/surrealdb#7426).
		crate::vfs::fsync_file(path)?;
		crate::lsm::fsync_directory(self.options.lopts.sstable_dir())?;

		Ok(true)
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
		new_table: Option<Arc<Table>>,
		guard: &mut HiddenTablesGuard,
	) -> Result<()> {
		// Check for table ID collision if adding a new table
		if let Some(ref table) = new_table {
			if input.tables_to_merge.contains(&table.id) {
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
		let new_table_path =
			new_table.as_ref().map(|table| self.options.lopts.sstable_file_path(table.id));

		// Add new table if present
		if let Some(table) = new_table {
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
			// A table that the manifest on the disk may name stays, until that is known.
			if let Some(path) = new_table_path.filter(|_| !failed.may_be_on_disk) {
				let _ = std::fs::remove_file(path);
			}
			let reason = crate::error::BackgroundErrorReason::ManifestWrite;
			self.options.error_handler.set_error(failed.error.clone(), reason);
			return Err(failed.error);
		}

		// Commit guard - tables are now properly handled in manifest
		guard.commit();

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

	fn get_table_path(&self, table_id: u64) -> PathBuf {
		self.options.lopts.sstable_file_path(table_id)
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

	fn open_table(&self, table_id: u64, table_path: &Path) -> Result<Arc<Table>> {
		let file = SysFile::open(table_path)?;
		let file: Arc<dyn File> = Arc::new(file);
		let file_size = file.size()?;

		Ok(Arc::new(Table::new(table_id, Arc::clone(&self.options.lopts), file, file_size)?))
	}
}
