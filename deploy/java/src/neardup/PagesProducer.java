package neardup;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.HashMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Publishes pages with the codec {@code raw}: each once, those of one URL in the order of the calls.
 *
 * <p>Publishing is asynchronous. {@link #flush}, or leaving a try block, waits until Kafka has all pages. A later call
 * throws NotDelivered for pages that could not be delivered, before it does its own work. Safe for several threads.
 */
public final class PagesProducer implements AutoCloseable {
    /** Failures kept with their URLs until NotDelivered is thrown; all are counted. */
    public static final int FAILURES_MAX = 1_000;

    /** Allowance for Kafka's overhead in the size of a record, as in the other clients. */
    private static final int FRAMING_BYTES = 1_024;
    private static final int BUFFER_BYTES = 64 << 20;
    private static final int URL_CHARS_SHOWN = 200;

    private final String topic;
    private final int recordBytesMax;
    private final KafkaProducer<byte[], byte[]> producer;
    private final List<NeardupException.Failure> failures = new ArrayList<>();
    private long failed;

    /**
     * Throws NeardupException without the topic, or without the right to describe its settings.
     *
     * @param topic its whole name, with the roles' topic_prefix
     * @param settings of Kafka's Java client, such as TLS and SASL; the guarantees of this class cannot be changed
     */
    public PagesProducer(String bootstrap, String topic, Map<String, Object> settings) {
        this.topic = topic;
        Map<String, Object> all = new HashMap<>(settings);
        all.put("bootstrap.servers", bootstrap);
        this.recordBytesMax = limitOf(topic, all);
        all.putIfAbsent("linger.ms", 5);
        all.putIfAbsent("compression.type", "zstd");
        all.putIfAbsent("buffer.memory", Math.max(BUFFER_BYTES, 2L * recordBytesMax));
        all.put("enable.idempotence", true);
        all.put("acks", "all");
        all.put("max.request.size", recordBytesMax + FRAMING_BYTES); // ours is the check that names the URL
        this.producer = new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static int limitOf(String topic, Map<String, Object> settings) {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = Admin.create(settings)) {
            var described = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            return Integer.parseInt(described.get(TopicConfig.MAX_MESSAGE_BYTES_CONFIG).value());
        } catch (ExecutionException error) {
            String reason = error.getCause() instanceof UnknownTopicOrPartitionException
                    ? "does not exist; create it: neardup topics create" : "was not described: " + error.getCause();
            throw new NeardupException("topic " + topic + " " + reason, error);
        } catch (InterruptedException error) {
            throw interrupted(error);
        }
    }

    static NeardupException interrupted(InterruptedException error) {
        Thread.currentThread().interrupt();
        return new NeardupException("interrupted", error);
    }

    /** Publishes one fetch. Waits while the buffer is full. Throws RecordTooLarge for this page. */
    public void publish(Page page) {
        throwFailures();
        ProducerRecord<byte[], byte[]> record = record(page);
        try {
            producer.send(record, (metadata, error) -> {
                if (error != null) {
                    fail(page.url(), error);
                }
            });
        } catch (KafkaException error) {
            throw new NeardupException(page.url() + ": not written to topic " + topic + ": " + error, error);
        }
    }

    /** Publishes one fetch and waits for its acknowledgement. Throws RecordTooLarge, NotDelivered for this page. */
    public void deliver(Page page) {
        try {
            producer.send(record(page)).get();
        } catch (ExecutionException | KafkaException error) {
            String reason = (error instanceof ExecutionException ? error.getCause() : error).getMessage();
            throw new NeardupException.NotDelivered(topic, List.of(new NeardupException.Failure(page.url(), reason)), 1);
        } catch (InterruptedException error) {
            throw interrupted(error);
        }
    }

    private ProducerRecord<byte[], byte[]> record(Page page) {
        byte[] key = page.url().getBytes(StandardCharsets.UTF_8);
        boolean gone = page.body() == null || page.status() == 404 || page.status() == 410;
        byte[] value = gone ? null : page.body();
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, key, value);
        Headers headers = record.headers();
        if (!gone || page.fetchedAt() != null || page.status() == 404 || page.status() == 410) {
            headers.add("http-status", ascii(page.status()));
            if (page.fetchedAt() != null) {
                headers.add("fetched-at", ascii(page.fetchedAt().toEpochMilli()));
            }
        }
        if (!gone && page.score() != null) {
            headers.add("score", ascii(page.score()));
        }
        if (!gone && page.contentType() != null && !page.contentType().isEmpty()) {
            headers.add("content-type", page.contentType().getBytes(StandardCharsets.ISO_8859_1));
        }
        long size = key.length + (gone ? 0 : value.length) + FRAMING_BYTES;
        for (var header : headers) {
            size += header.key().length() + header.value().length;
        }
        if (size > recordBytesMax) {
            String url = page.url().substring(0, Math.min(URL_CHARS_SHOWN, page.url().length()));
            throw new NeardupException.RecordTooLarge(("%s: a record of %,d bytes, and topic %s takes %,d: raise its "
                    + "max.message.bytes").formatted(url, size, topic, recordBytesMax));
        }
        return record;
    }

    private static byte[] ascii(Object value) {
        return String.valueOf(value).getBytes(StandardCharsets.US_ASCII);
    }

    /** Waits until Kafka has every page. Throws NotDelivered. */
    public void flush() {
        producer.flush();
        throwFailures();
    }

    /** Waits as {@link #flush}, then closes. */
    @Override
    public void close() {
        try {
            flush();
        } finally {
            producer.close();
        }
    }

    private synchronized void fail(String url, Exception error) {
        failed++;
        if (failures.size() < FAILURES_MAX) {
            failures.add(new NeardupException.Failure(url, error.getMessage()));
        }
    }

    private synchronized void throwFailures() {
        if (failed > 0) {
            var raised = new NeardupException.NotDelivered(topic, List.copyOf(failures), failed);
            failures.clear();
            failed = 0;
            throw raised;
        }
    }
}
