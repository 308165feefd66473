"""Options of RocksDB that `tests.measure.bench.options` tries, each by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rocksdict import BlockBasedIndexType, Cache, ChecksumType, DataBlockIndexType, DBCompactionStyle
from rocksdict import DBCompressionType as Compression

from neardup.index.column_families import Family

_MB = 1 << 20

#: Sets options of one family: its Options and BlockBasedOptions.
Tune = Callable[[Family, Any, Any], None]


@dataclass(frozen=True)
class Variant:
    """What a run changes. tune: options of a family; sizes: arguments of RocksStore."""

    about: str
    tune: Tune | None = None
    sizes: tuple[tuple[str, int], ...] = ()


def _all(change: Callable[[Any, Any], object]) -> Tune:
    def tune(_: Family, options: Any, tables: Any) -> None:
        change(options, tables)

    return tune


def _only(family: Family, change: Callable[[Any, Any], object]) -> Tune:
    def tune(of: Family, options: Any, tables: Any) -> None:
        if of is family:
            change(options, tables)

    return tune


def _partitioned(_: Any, tables: Any) -> None:
    tables.set_index_type(BlockBasedIndexType.two_level_index_search())
    tables.set_partition_filters(True)
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_top_level_index_and_filter(True)


def _hash_index(_: Any, tables: Any) -> None:
    tables.set_data_block_index_type(DataBlockIndexType.binary_and_hash())
    tables.set_data_block_hash_ratio(0.75)


def _filters_for_hits(options: Any, _: Any) -> None:
    options.set_optimize_filters_for_hits(True)


def _merged(options: Any, _: Any) -> None:
    options.set_max_write_buffer_number(4)
    options.set_min_write_buffer_number_to_merge(2)


def _levels(options: Any, _: Any) -> None:
    options.set_compaction_style(DBCompactionStyle.level())
    options.set_level_zero_file_num_compaction_trigger(4)


def _universal(options: Any, _: Any) -> None:
    options.set_compaction_style(DBCompactionStyle.universal())


def _busy(options: Any, _: Any) -> None:
    options.set_max_background_jobs(4)
    options.set_max_subcompactions(2)


def _memtable_filter(share: float) -> Callable[[Any, Any], None]:
    def change(options: Any, _: Any) -> None:
        options.set_memtable_prefix_bloom_ratio(share)
        options.set_memtable_whole_key_filtering(share > 0)

    return change


def _lz4_then_zstd(options: Any, _: Any) -> None:
    options.set_compression_type(_LZ4())
    options.set_bottommost_compression_type(_ZSTD())


def _together(share: float, files: int) -> Callable[[Any, Any], None]:
    def change(options: Any, tables: Any) -> None:
        _memtable_filter(share)(options, tables)
        options.set_min_level_to_compress(2)
        options.set_level_zero_file_num_compaction_trigger(files)

    return change


def _blobs(options: Any, _: Any) -> None:
    options.set_enable_blob_files(True)
    options.set_min_blob_size(512)


_ZSTD, _LZ4, _NONE = Compression.zstd, Compression.lz4, Compression.none

VARIANTS = {
    "default": Variant("as the index has them"),
    "filter 8 bits": Variant("bits of the Bloom filter a key", _all(lambda _, t: t.set_bloom_filter(8, False))),
    "filter 10 bits": Variant("", _all(lambda _, t: t.set_bloom_filter(10, False))),
    "filter 12 bits": Variant("", _all(lambda _, t: t.set_bloom_filter(12, False))),
    "filter 16 bits": Variant("", _all(lambda _, t: t.set_bloom_filter(16, False))),
    "no filter": Variant("of no family", _all(lambda _, t: t.set_bloom_filter(0, False))),
    "filters for hits": Variant("no filter in the last level", _all(_filters_for_hits)),
    "no memtable filter": Variant("of what is in memory", _all(_memtable_filter(0.0))),
    "memtable filter 1%": Variant("of a write buffer", _all(_memtable_filter(0.01))),
    "memtable filter 2%": Variant("", _all(_memtable_filter(0.02))),
    "memtable filter 5%": Variant("", _all(_memtable_filter(0.05))),
    "memtable filter 10%": Variant("", _all(_memtable_filter(0.1))),
    "keys: memtable filter 2%": Variant("", _only(Family.KEYS, _memtable_filter(0.02))),
    "keys: memtable filter 5%": Variant("", _only(Family.KEYS, _memtable_filter(0.05))),
    "blocks of 4 kB": Variant("", _all(lambda _, t: t.set_block_size(4 << 10))),
    "blocks of 8 kB": Variant("", _all(lambda _, t: t.set_block_size(8 << 10))),
    "blocks of 16 kB": Variant("", _all(lambda _, t: t.set_block_size(16 << 10))),
    "blocks of 32 kB": Variant("", _all(lambda _, t: t.set_block_size(32 << 10))),
    "keys: blocks of 4 kB": Variant("", _only(Family.KEYS, lambda _, t: t.set_block_size(4 << 10))),
    "keys: blocks of 2 kB": Variant("", _only(Family.KEYS, lambda _, t: t.set_block_size(2 << 10))),
    "keys: blocks of 8 kB": Variant("", _only(Family.KEYS, lambda _, t: t.set_block_size(8 << 10))),
    "sketches: blocks of 4 kB": Variant("", _only(Family.SKETCHES, lambda _, t: t.set_block_size(4 << 10))),
    "hash index": Variant("in each block, beside the binary search", _all(_hash_index)),
    "partitioned index": Variant("and filters, in the block cache", _all(_partitioned)),
    "index in cache": Variant("", _all(lambda _, t: t.set_cache_index_and_filter_blocks(True))),
    "zstd": Variant("everywhere", _all(lambda o, _: o.set_compression_type(_ZSTD()))),
    "lz4": Variant("everywhere", _all(lambda o, _: o.set_compression_type(_LZ4()))),
    "no compression": Variant("anywhere", _all(lambda o, _: o.set_compression_type(_NONE()))),
    "keys: zstd": Variant("", _only(Family.KEYS, lambda o, _: o.set_compression_type(_ZSTD()))),
    "keys: lz4": Variant("", _only(Family.KEYS, lambda o, _: o.set_compression_type(_LZ4()))),
    "keys: no compression": Variant("", _only(Family.KEYS, lambda o, _: o.set_compression_type(_NONE()))),
    "sketches: zstd": Variant("", _only(Family.SKETCHES, lambda o, _: o.set_compression_type(_ZSTD()))),
    "sketches: lz4": Variant("", _only(Family.SKETCHES, lambda o, _: o.set_compression_type(_LZ4()))),
    "sketches: no compression": Variant("", _only(Family.SKETCHES, lambda o, _: o.set_compression_type(_NONE()))),
    "zstd from level 2 on": Variant("none above", _all(lambda o, _: o.set_min_level_to_compress(2))),
    "lz4, zstd in the last level": Variant("", _all(_lz4_then_zstd)),
    "memtable filter 2%, zstd from level 2 on, level 0: 4 files": Variant("", _all(_together(0.02, 4))),
    "memtable filter 2%, zstd from level 2 on, level 0: 8 files": Variant("", _all(_together(0.02, 8))),
    "memtable filter 2%, writes 64 MB": Variant("", _all(_memtable_filter(0.02)), sizes=(("write_bytes", 64 * _MB),)),
    "sketches in blobs": Variant("apart from their keys", _only(Family.SKETCHES, _blobs)),
    "cache 64 MB": Variant("of blocks", sizes=(("cache_bytes", 64 * _MB),)),
    "cache 256 MB": Variant("", sizes=(("cache_bytes", 256 * _MB),)),
    "cache 1 GB": Variant("", sizes=(("cache_bytes", 1024 * _MB),)),
    "clock cache": Variant(
        "instead of LRU", _all(lambda _, t: t.set_block_cache(Cache.new_hyper_clock_cache(256 * _MB, 0)))
    ),
    "writes 64 MB": Variant("held before a flush", sizes=(("write_bytes", 64 * _MB),)),
    "writes 128 MB": Variant("", sizes=(("write_bytes", 128 * _MB),)),
    "writes 256 MB": Variant("", sizes=(("write_bytes", 256 * _MB),)),
    "writes 512 MB": Variant("", sizes=(("write_bytes", 512 * _MB),)),
    "4 write buffers": Variant("a family", _all(lambda o, _: o.set_max_write_buffer_number(4))),
    "merge 2 buffers": Variant("before a flush", _all(_merged)),
    "levels": Variant("style of compaction, in all families", _all(_levels)),
    "universal": Variant("", _all(_universal)),
    "static levels": Variant("", _all(lambda o, _: o.set_level_compaction_dynamic_level_bytes(False))),
    "4 jobs": Variant("in the background", _all(lambda o, _: o.set_max_background_jobs(4))),
    "4 jobs, 2 parts": Variant("of a compaction", _all(_busy)),
    "level 0: 2 files": Variant("trigger", _all(lambda o, _: o.set_level_zero_file_num_compaction_trigger(2))),
    "level 0: 8 files": Variant("", _all(lambda o, _: o.set_level_zero_file_num_compaction_trigger(8))),
    "level 1 of 64 MB": Variant("", _all(lambda o, _: o.set_max_bytes_for_level_base(64 * _MB))),
    "level 1 of 1 GB": Variant("", _all(lambda o, _: o.set_max_bytes_for_level_base(1024 * _MB))),
    "files of 16 MB": Variant("", _all(lambda o, _: o.set_target_file_size_base(16 * _MB))),
    "files of 256 MB": Variant("", _all(lambda o, _: o.set_target_file_size_base(256 * _MB))),
    "direct reads": Variant("past the system's cache", _all(lambda o, _: o.set_use_direct_reads(True))),
    "direct compaction": Variant("", _all(lambda o, _: o.set_use_direct_io_for_flush_and_compaction(True))),
    "no random hint": Variant("to the system", _all(lambda o, _: o.set_advise_random_on_open(False))),
    "at most 64 MB/s": Variant("of background writes", _all(lambda o, _: o.set_ratelimiter(64 * _MB, 100_000, 10))),
    "sync in steps of 1 MB": Variant("", _all(lambda o, _: o.set_bytes_per_sync(_MB))),
    "checksums xxh3": Variant("", _all(lambda _, t: t.set_checksum_type(ChecksumType.xxh3()))),
}
