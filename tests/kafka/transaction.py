"""A process that is killed in the middle of a transaction: python transaction.py BOOTSTRAP TOPIC TRANSACTIONAL_ID.

It writes records until the broker has them, says so, and waits for its end with the transaction open.
"""

import signal
import sys

from confluent_kafka import Producer

bootstrap, topic, transactional_id = sys.argv[1:]
producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
producer.init_transactions(60)
producer.begin_transaction()
for number in range(10):
    producer.produce(topic, b"never", b"%d" % number, 0)
assert producer.flush(60) == 0
print("open", flush=True)
signal.pause()
