"""The documented properties of the table format, with their defaults.

Source: the format's configuration page, and `TableProperties` of the reference (1.10) for what that leaves out.
"""

from __future__ import annotations

from app.engine.model.document import MAX_LONG
from app.engine.model.settings import properties as names
from app.engine.properties.known import Group, KnownProperty, Origin
from app.engine.properties.value_kinds import (
    SWITCH,
    AnyText,
    Fraction,
    JsonList,
    MetricsMode,
    NumberOf,
    OneOf,
    ValueKind,
    WholeNumber,
    bytes_from,
    milliseconds,
)

_FORMATS = OneOf(("parquet", "avro", "orc"))
_PLANNING = OneOf(("auto", "local", "distributed"))
_PARQUET_CODECS = OneOf(("zstd", "gzip", "snappy", "lz4", "lz4_raw", "lzo", "brotli", "uncompressed", "none"))
_MANIFEST_CODECS = ("gzip", "zstd", "snappy", "uncompressed")
# PyIceberg takes Avro's own names, too, and writes its manifests with this codec: uncompressed is only "null" there.
_AVRO_CODECS = OneOf((*_MANIFEST_CODECS, "deflate", "zstandard", "bzip2", "null"))
# Clients compare exactly.
_PAGE_VERSIONS = OneOf(("v1", "v2", "PARQUET_1_0", "PARQUET_2_0"), exactly=True)
_ORC_CODECS = OneOf(("zlib", "zstd", "lz4", "lzo", "snappy", "none"))
_DISTRIBUTION = OneOf(("none", "hash", "range"))
_ISOLATION = OneOf(("serializable", "snapshot"))
_ROW_LEVEL = OneOf(("copy-on-write", "merge-on-read"))
_LEVEL = WholeNumber(-(2**31), 2**31 - 1, "level")
_COUNT, _FROM_ONE = WholeNumber(0), WholeNumber(1)
_MS = milliseconds()
_INT_MS = milliseconds(2**31 - 1)
_SIZE = bytes_from(1)
_INT_SIZE = WholeNumber(1, 2**31 - 1, "bytes")


def _of(group: Group, *rows: tuple[str, ValueKind, str | None, str]) -> tuple[KnownProperty, ...]:
    return tuple(KnownProperty(name, kind, default, meaning, group) for name, kind, default, meaning in rows)


_READ = _of(
    Group.READ,
    ("read.split.target-size", _SIZE, "134217728", "Size that splits of data files aim at."),
    ("read.split.metadata-target-size", _SIZE, "33554432", "Size that splits of metadata files aim at."),
    ("read.split.planning-lookback", _FROM_ONE, "10", "How many open splits are tried for each file."),
    (
        "read.split.open-file-cost",
        bytes_from(0),
        "4194304",
        "Least weight of a file: the cost of opening it.",
    ),
    ("read.split.adaptive-size.enabled", SWITCH, "true", "Adapt the size of splits to the scan."),
    ("read.parquet.vectorization.enabled", SWITCH, "true", "Read Parquet in batches."),
    ("read.parquet.vectorization.batch-size", _FROM_ONE, "5000", "Rows in a batch of Parquet."),
    ("read.orc.vectorization.enabled", SWITCH, "false", "Read ORC in batches."),
    ("read.orc.vectorization.batch-size", _FROM_ONE, "5000", "Rows in a batch of ORC."),
    ("read.data-planning-mode", _PLANNING, "auto", "Where Spark reads manifests of data files."),
    ("read.delete-planning-mode", _PLANNING, "auto", "Where Spark reads manifests of delete files."),
)
_PLANNER = KnownProperty(
    names.SCAN_PLANNING_MODE,
    # Clients know two values, in lower case, and fail on others.
    OneOf(("client", "server"), exactly=True),
    "client",
    "Who plans scans.",
    Group.READ,
    (Origin.TABLE, Origin.WAREHOUSE_OVERRIDE, Origin.WAREHOUSE),
)

_PARQUET = (
    ("row-group-size-bytes", _SIZE, "134217728", "Size of a row group."),
    ("page-size-bytes", _INT_SIZE, "1048576", "Size of a page."),
    ("page-version", _PAGE_VERSIONS, "v1", "Version of data pages."),
    ("page-row-limit", _FROM_ONE, "20000", "Most rows of a page."),
    ("dict-size-bytes", _INT_SIZE, "2097152", "Size of a dictionary page."),
    ("compression-codec", _PARQUET_CODECS, "gzip", "Codec; new tables are given zstd."),
    ("compression-level", _LEVEL, None, "Level of the codec."),
    (
        "row-group-check-min-record-count",
        _FROM_ONE,
        "100",
        "Least rows between two looks at a row group's size.",
    ),
    (
        "row-group-check-max-record-count",
        _FROM_ONE,
        "10000",
        "Most rows between two looks at a row group's size.",
    ),
)
_AVRO = (
    ("compression-codec", _AVRO_CODECS, "gzip", "Codec."),
    ("compression-level", _LEVEL, None, "Level of the codec."),
)
_ORC = (
    ("stripe-size-bytes", _SIZE, "67108864", "Size of a stripe."),
    ("block-size-bytes", _SIZE, "268435456", "Size of a block of the file system."),
    ("vectorized.batch-size", _FROM_ONE, "1024", "Rows that are written in one batch."),
    ("compression-codec", _ORC_CODECS, "zlib", "Codec."),
    ("compression-strategy", OneOf(("speed", "compression")), "speed", "What compression aims at."),
)
_FILES = (("parquet", _PARQUET), ("avro", _AVRO), ("orc", _ORC))

_WRITE = _of(
    Group.WRITE,
    ("write.format.default", _FORMATS, "parquet", "Format of data files."),
    ("write.delete.format.default", _FORMATS, None, "Format of delete files; that of data files if not set."),
    *((f"write.{format_name}.{end}", *rest) for format_name, rows in _FILES for end, *rest in rows),
    *(
        (
            f"write.delete.{format_name}.{end}",
            kind,
            None,
            f"For delete files: {meaning[0].lower()}{meaning[1:-1].partition(';')[0]}; as for data files if not set.",
        )
        for format_name, rows in _FILES
        for end, kind, _, meaning in rows
    ),
    (
        "write.parquet.row-group-size-track-uncompressed",
        SWITCH,
        "false",
        "Hold row groups to their size before compression.",
    ),
    ("write.parquet.shred-variants", SWITCH, "false", "Write variant columns shredded."),
    (
        "write.parquet.variant-inference-buffer-size",
        _FROM_ONE,
        "100",
        "Rows that decide how variants are shredded.",
    ),
    ("write.parquet.bloom-filter-enabled.column.", SWITCH, None, "Write a Bloom filter for a column."),
    ("write.parquet.bloom-filter-max-bytes", _INT_SIZE, "1048576", "Most bytes of a Bloom filter."),
    (
        "write.parquet.bloom-filter-fpp.column.",
        Fraction(),
        "0.01",
        "False positives of a column's Bloom filter.",
    ),
    (
        "write.parquet.bloom-filter-ndv.column.",
        WholeNumber(1, MAX_LONG),
        None,
        "Distinct values that a column's Bloom filter expects.",
    ),
    (
        "write.parquet.bloom-filter-adaptive-enabled",
        SWITCH,
        "false",
        "Choose the size of Bloom filters by their values.",
    ),
    ("write.parquet.stats-enabled.column.", SWITCH, None, "Write Parquet's own statistics of a column."),
    ("write.parquet.dict-encoding-enabled.column.", SWITCH, None, "Write a column with a dictionary."),
    (
        "write.orc.bloom.filter.columns",
        AnyText("columns"),
        "",
        "Columns that are given a Bloom filter in ORC.",
    ),
    ("write.orc.bloom.filter.fpp", Fraction(), "0.05", "False positives of Bloom filters in ORC."),
    ("write.manifest.compression-codec", OneOf(_MANIFEST_CODECS), "gzip", "Codec of manifests."),
    ("write.manifest.compression-level", _LEVEL, None, "Level of the codec of manifests."),
    ("write.location-provider.impl", AnyText("class"), None, "Java class that chooses where data files go."),
    (names.METADATA_COMPRESSION, OneOf(("none", "gzip")), "none", "Codec of metadata files."),
    (
        "write.metadata.metrics.max-inferred-column-defaults",
        _COUNT,
        "100",
        "Most columns that have metrics unasked.",
    ),
    ("write.metadata.metrics.default", MetricsMode(), "truncate(16)", "Metrics of columns."),
    (names.COLUMN_METRICS_PREFIX, MetricsMode(), None, "Metrics of one column."),
    ("write.target-file-size-bytes", _SIZE, "536870912", "Size that data files aim at."),
    ("write.delete.target-file-size-bytes", _SIZE, "67108864", "Size that delete files aim at."),
    ("write.distribution-mode", _DISTRIBUTION, None, "How rows are spread over writers; engines differ."),
    ("write.delete.distribution-mode", _DISTRIBUTION, None, "How rows of DELETE are spread over writers."),
    ("write.update.distribution-mode", _DISTRIBUTION, None, "How rows of UPDATE are spread over writers."),
    ("write.merge.distribution-mode", _DISTRIBUTION, None, "How rows of MERGE are spread over writers."),
    ("write.wap.enabled", SWITCH, "false", "Let writers stage snapshots that are published later."),
    ("write.summary.partition-limit", _COUNT, "0", "Most changed partitions that snapshot summaries list."),
    (names.DELETE_AFTER_COMMIT, SWITCH, "false", "Delete the oldest metadata file after each commit."),
    (
        names.PREVIOUS_VERSIONS_MAX,
        WholeNumber(None),
        "100",
        "Most earlier metadata files that the table's log names; less than 1 counts as 1.",
    ),
    ("write.spark.fanout.enabled", SWITCH, "false", "Let Spark keep a file open for each partition."),
    ("write.spark.accept-any-schema", SWITCH, "false", "Let Spark write rows of another schema."),
    ("write.spark.auto-schema-evolution.enabled", SWITCH, "true", "Let Spark's MERGE add columns."),
    ("write.spark.advisory-partition-size-bytes", _SIZE, None, "Size of Spark's tasks before writing."),
    ("write.object-storage.enabled", SWITCH, "false", "Begin the paths of data files with a hash."),
    ("write.object-storage.partitioned-paths", SWITCH, "true", "Put partition values into such paths, too."),
    ("write.data.path", AnyText("location"), None, "Where data files go; `<table>/data` if not set."),
    (
        names.METADATA_PATH,
        AnyText("location"),
        None,
        "Where metadata files go; `<table>/metadata` if not set.",
    ),
    ("write.object-storage.path", AnyText("location"), None, "Old name of `write.data.path`."),
    ("write.folder-storage.path", AnyText("location"), None, "Old name of `write.data.path`."),
    ("write.delete.mode", _ROW_LEVEL, "copy-on-write", "How DELETE takes rows away."),
    ("write.delete.isolation-level", _ISOLATION, "serializable", "What DELETE conflicts with."),
    ("write.update.mode", _ROW_LEVEL, "copy-on-write", "How UPDATE replaces rows."),
    ("write.update.isolation-level", _ISOLATION, "serializable", "What UPDATE conflicts with."),
    ("write.merge.mode", _ROW_LEVEL, "copy-on-write", "How MERGE replaces rows."),
    ("write.merge.isolation-level", _ISOLATION, "serializable", "What MERGE conflicts with."),
    (
        "write.delete.granularity",
        OneOf(("partition", "file")),
        "partition",
        "What one position delete file is about.",
    ),
    ("write.upsert.enabled", SWITCH, "false", "Let Flink replace rows of the same key."),
)

_COMMIT = _of(
    Group.COMMIT,
    ("commit.retry.num-retries", _COUNT, "4", "How often a client tries a commit again."),
    ("commit.retry.min-wait-ms", _INT_MS, "100", "Shortest pause before a commit is tried again."),
    ("commit.retry.max-wait-ms", _INT_MS, "60000", "Longest pause before a commit is tried again."),
    ("commit.retry.total-timeout-ms", _INT_MS, "1800000", "How long a client goes on trying."),
    ("commit.status-check.num-retries", _COUNT, "3", "How often a client asks what became of a commit."),
    ("commit.status-check.min-wait-ms", _INT_MS, "1000", "Shortest pause before it asks again."),
    ("commit.status-check.max-wait-ms", _INT_MS, "60000", "Longest pause before it asks again."),
    ("commit.status-check.total-timeout-ms", _INT_MS, "1800000", "How long it goes on asking."),
    ("commit.manifest.target-size-bytes", bytes_from(0), "8388608", "Size that merged manifests aim at."),
    (
        "commit.manifest.min-count-to-merge",
        _COUNT,
        "100",
        "How many manifests are needed before they are merged.",
    ),
    ("commit.manifest-merge.enabled", SWITCH, "true", "Let writers merge manifests."),
)

_HISTORY = _of(
    Group.HISTORY,
    ("history.expire.max-snapshot-age-ms", _MS, "432000000", "Older snapshots may be expired."),
    ("history.expire.min-snapshots-to-keep", _FROM_ONE, "1", "Each branch keeps at least so many."),
    ("history.expire.max-ref-age-ms", _MS, str(MAX_LONG), "Older branches and tags may go, but for main."),
    (names.GC_ENABLED, SWITCH, "true", "Allow to delete files of the table."),
)

_ENCRYPTION = _of(
    Group.ENCRYPTION,
    (
        names.ENCRYPTION_KEY_ID,
        AnyText("key"),
        None,
        "The table's master key; its files are encrypted if it is set. It never changes.",
    ),
    ("encryption.data-key-length", NumberOf((16, 24, 32)), "16", "Bytes of the keys of files."),
)

_COMPATIBILITY = _of(
    Group.COMPATIBILITY,
    (
        "compatibility.snapshot-id-inheritance.enabled",
        SWITCH,
        "false",
        "Let version 1 tables take over manifests without snapshot ids.",
    ),
    ("schema.name-mapping.default", JsonList(), None, "Columns of data files that have no field ids."),
    ("identifier-fields.rely", SWITCH, "false", "Let engines take identifier fields for a primary key."),
    ("engine.hive.enabled", SWITCH, "false", "Let Hive read the table."),
    ("engine.hive.lock-enabled", SWITCH, "true", "Take Hive's lock for each commit."),
    ("comment", AnyText(), None, "What the table is for."),
)

_VIEW = _of(
    Group.VIEW,
    (names.VIEW_HISTORY_ENTRIES, _FROM_ONE, "10", "How many versions a view keeps."),
    (names.VIEW_DROP_DIALECT_ALLOWED, SWITCH, "false", "Let a new version leave out SQL dialects."),
)

FORMAT_PROPERTIES = (*_READ, _PLANNER, *_WRITE, *_COMMIT, *_HISTORY, *_ENCRYPTION, *_COMPATIBILITY, *_VIEW)
