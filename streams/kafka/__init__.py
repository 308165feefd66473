"""The ports on Apache Kafka: the only package that imports confluent_kafka.

Pinned below confluent-kafka 2.16: with 2.16.0 and 2.16.1 a transactional producer hung for ever after its broker was
killed and restarted. Check a newer one with tests/kafka before changing the bound.

Messages are handed on as confluent_kafka gives them (`Record`): a batch costs no per-record object of ours.
"""

from streams.errors import how_to_install

try:
    import confluent_kafka  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "confluent_kafka":
        raise
    wanted = f"confluent_kafka is not installed, and the stream needs it: {how_to_install('kafka')}"
    raise ModuleNotFoundError(wanted, name=error.name) from None

from streams.kafka.admin import Admin, Topic
from streams.kafka.connection import Connection
from streams.kafka.generations import ControlReader, ControlTopic, Generation, Generations, Stage
from streams.kafka.merged import MergedPages
from streams.kafka.pages import KafkaPages, PageBatch
from streams.kafka.reader import KafkaLog, Reader
from streams.kafka.verdicts import KafkaVerdicts
from streams.kafka.writer import Writer

__all__ = [
    "Admin",
    "Connection",
    "ControlReader",
    "ControlTopic",
    "Generation",
    "Generations",
    "KafkaLog",
    "KafkaPages",
    "KafkaVerdicts",
    "MergedPages",
    "PageBatch",
    "Reader",
    "Stage",
    "Topic",
    "Writer",
]
