"""The ports on Apache Kafka: the only package that imports confluent_kafka.

confluent-kafka is pinned below 2.16: with 2.16.0 and 2.16.1 a transactional producer hung for ever after its broker was
killed and restarted. Run tests/kafka with a newer version before you change the bound.

Messages are passed on as confluent_kafka returns them (`Record`), so no further object is made for each record.
"""

from streams.errors import how_to_install

try:
    import confluent_kafka  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "confluent_kafka":
        raise
    required = f"confluent_kafka is not installed, and the stream needs it: {how_to_install('kafka')}"
    raise ModuleNotFoundError(required, name=error.name) from None

from streams.kafka.admin import Admin, KafkaTopic
from streams.kafka.connection import Connection
from streams.kafka.control_topic import ControlReader, ControlTopic, Generation, Generations, Stage
from streams.kafka.merged_pages import MergedPages
from streams.kafka.pages import KafkaPages
from streams.kafka.reader import KafkaLog, TopicReader
from streams.kafka.verdict_transactions import KafkaVerdicts
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
    "KafkaTopic",
    "KafkaVerdicts",
    "MergedPages",
    "Stage",
    "TopicReader",
    "Writer",
]
