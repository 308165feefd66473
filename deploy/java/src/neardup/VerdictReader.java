package neardup;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads each committed verdict of the live generation once, and follows a cut-over to another generation.
 *
 * <p>Store {@link Batch#positions} in the transaction that stores the rows made from the verdicts, and give them to the
 * next reader: after a crash both are there or neither is. Kafka stores no position. The positions have the names that
 * the Python client gives them, so either client goes on where the other one stopped.
 *
 * <p>A generation's verdicts are about all pages: it is read from its start when it becomes live for the first time,
 * and from its stored positions when it becomes live again. Keep a row for each (generation, URL), replace it only by
 * a verdict that is {@link #newer}, and show the rows of the generation whose batch was complete last. Not thread-safe.
 */
public final class VerdictReader implements AutoCloseable {
    /** Interval of checks for a cut-over. */
    private static final Duration LIVE_INTERVAL = Duration.ofSeconds(1);
    /** Interval of checks for added partitions. */
    private static final Duration PARTITIONS_INTERVAL = Duration.ofSeconds(30);
    private static final Duration REQUEST_MAX = Duration.ofSeconds(60);
    private static final int CONTROL_FORMAT = 1;
    private static final ObjectMapper JSON = new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false); // fields may be added to a version

    private final String topic;
    private final String controlTopic;
    private final Map<String, Object> settings;
    private final Admin admin;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<String, Long> positions;
    private KafkaConsumer<byte[], byte[]> control;
    private TopicDescription described;
    private Map<TopicPartition, Long> ends;
    private String live = "";
    private String generation;
    private boolean complete;
    private long liveChecked;
    private long partitionsChecked;

    /** Some verdicts of one generation, with all positions behind them. */
    public record Batch(String generation, List<Verdict> verdicts, Map<String, Long> positions, boolean complete) {}

    /**
     * @param topic of the unnamed generation, with the prefix: "verdicts"
     * @param controlTopic the roles' topic_prefix and group, and ".generations": "neardup.generations"
     * @param stored the positions of the last stored batch; empty at first
     * @param settings of Kafka's Java client, such as TLS and SASL
     */
    public VerdictReader(String bootstrap, String topic, String controlTopic, Map<String, Long> stored,
            Map<String, Object> settings) {
        this.topic = topic;
        this.controlTopic = controlTopic;
        this.settings = new HashMap<>(settings);
        this.settings.put("bootstrap.servers", bootstrap);
        this.settings.put("enable.auto.commit", false);
        this.settings.put("auto.offset.reset", "none");
        this.settings.remove("group.id");
        this.positions = new TreeMap<>(stored);
        this.admin = Admin.create(this.settings);
        this.consumer = consumer("read_committed");
        try {
            open(lookUpLive());
        } catch (RuntimeException error) {
            close();
            throw error;
        }
    }

    /** Returns whether a verdict replaces another one of the same generation and URL: it is later, or of a new log. */
    public static boolean newer(Verdict verdict, Verdict held) {
        if (!java.util.Objects.equals(verdict.generation(), held.generation())) {
            throw new IllegalArgumentException(verdict.url() + ": verdicts of generations " + verdict.generation()
                    + " and " + held.generation() + " are not compared; keep a row for each generation");
        }
        if (!java.util.Objects.equals(verdict.log(), held.log())) {
            return true;
        }
        return verdict.pageId() != held.pageId() ? verdict.pageId() > held.pageId() : verdict.n() > held.n();
    }

    /** Returns the URL that an index shows in place of the verdict's; null if it shows that one, or it is gone. */
    public static String duplicateOf(Verdict verdict) {
        boolean standing = verdict.standing() != null;
        Verdict.Kind kind = standing ? verdict.standing().verdict() : verdict.verdict();
        if (kind != Verdict.Kind.EXACT_DUPLICATE && kind != Verdict.Kind.NEAR_DUPLICATE) {
            return null;
        }
        return (standing ? verdict.standing().representative() : verdict.representative()).url();
    }

    /**
     * Returns the next verdicts; none after {@code wait}. The first complete batch after a start or a cut-over is the
     * first behind the end that the generation's topic had then: its rows can be shown. It may have no verdicts.
     */
    public Batch read(Duration wait) {
        followCutOver();
        if (System.nanoTime() - partitionsChecked >= PARTITIONS_INTERVAL.toNanos()) {
            assign(describe(described.name()));
        }
        List<Verdict> verdicts = new ArrayList<>();
        try {
            Duration limit = wait.compareTo(LIVE_INTERVAL) < 0 ? wait : LIVE_INTERVAL;
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(complete() ? limit : Duration.ofMillis(200))) {
                if (record.value() != null) { // an operator deletes a URL from a compacted topic by a null value
                    verdicts.add(decode(record));
                }
            }
        } catch (OffsetOutOfRangeException error) {
            throw new NeardupException.PositionLost(error.offsetOutOfRangePartitions() + ": verdicts were deleted before "
                    + "they were read; clear the stored positions to go on with the verdicts that are left", error);
        }
        for (TopicPartition partition : consumer.assignment()) {
            positions.put(name(described, partition.partition()), consumer.position(partition));
        }
        complete = complete();
        return new Batch(generation, verdicts, Map.copyOf(positions), complete);
    }

    private boolean complete() {
        return complete || ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
    }

    static Verdict decode(ConsumerRecord<byte[], byte[]> record) {
        try {
            Verdict verdict = JSON.readValue(record.value(), Verdict.class);
            if (verdict == null || verdict.verdict() == null || verdict.url() == null) {
                throw new IOException("a required field is missing");
            }
            return verdict;
        } catch (IOException error) {
            throw new NeardupException.CorruptRecord("topic %s, partition %d, offset %d: no verdict of neardup (%s)"
                    .formatted(record.topic(), record.partition(), record.offset(), error.getMessage()), error);
        }
    }

    /** Closes at once. */
    @Override
    public void close() {
        consumer.close();
        if (control != null) {
            control.close();
        }
        admin.close();
    }

    private KafkaConsumer<byte[], byte[]> consumer(String isolation) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("isolation.level", isolation);
        return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private void followCutOver() {
        if (System.nanoTime() - liveChecked >= LIVE_INTERVAL.toNanos()) {
            String found = lookUpLive();
            if (!found.equals(generation)) {
                open(found);
            }
        }
    }

    private void open(String name) {
        TopicDescription found = describe(name.isEmpty() ? topic : topic + "." + name);
        consumer.assign(List.of());
        assign(found);
        ends = consumer.endOffsets(consumer.assignment(), REQUEST_MAX);
        generation = name;
        complete = false;
    }

    /** Assigns all partitions of a topic: at their positions; from the start where there is none. */
    private void assign(TopicDescription found) {
        if (described != null && described.name().equals(found.name()) && !described.topicId().equals(found.topicId())) {
            throw new NeardupException.PositionLost("topic " + found.name() + " was recreated: start a new reader, which "
                    + "reads it from its start; compare page ids only among verdicts of one log", null);
        }
        described = found;
        partitionsChecked = System.nanoTime();
        List<TopicPartition> all = found.partitions().stream()
                .map(each -> new TopicPartition(found.name(), each.partition())).toList();
        if (consumer.assignment().size() == all.size()) {
            return;
        }
        consumer.assign(all);
        List<TopicPartition> fresh = new ArrayList<>();
        for (TopicPartition each : all) {
            Long position = positions.get(name(found, each.partition()));
            if (position == null) {
                fresh.add(each);
            } else {
                consumer.seek(each, position);
            }
        }
        consumer.beginningOffsets(fresh, REQUEST_MAX).forEach(consumer::seek);
    }

    private static String name(TopicDescription topic, int partition) {
        var id = topic.topicId();
        return "%016x%016x/%d".formatted(id.getMostSignificantBits(), id.getLeastSignificantBits(), partition);
    }

    private String lookUpLive() {
        if (control == null && tryDescribe(controlTopic) != null) {
            control = consumer("read_uncommitted");
            TopicPartition only = new TopicPartition(controlTopic, 0);
            control.assign(List.of(only));
            control.beginningOffsets(List.of(only), REQUEST_MAX).forEach(control::seek);
        }
        if (control != null) {
            TopicPartition only = control.assignment().iterator().next();
            long end = control.endOffsets(List.of(only), REQUEST_MAX).get(only);
            while (control.position(only, REQUEST_MAX) < end) {
                control.poll(Duration.ofMillis(200)).forEach(this::take);
            }
        }
        liveChecked = System.nanoTime();
        return live;
    }

    private void take(ConsumerRecord<byte[], byte[]> record) {
        if (record.key() == null || !new String(record.key(), java.nio.charset.StandardCharsets.UTF_8).equals("live")) {
            return;
        }
        try {
            JsonNode fields = record.value() == null ? null : JSON.readTree(record.value());
            if (fields != null && (fields.path("format").asInt() != CONTROL_FORMAT || !fields.has("generation"))) {
                throw new IOException("this client does not know its format");
            }
            live = fields == null ? "" : fields.get("generation").asText();
        } catch (IOException error) {
            throw new NeardupException.CorruptRecord("topic %s, partition 0, offset %d: the live generation cannot be read: %s"
                    .formatted(controlTopic, record.offset(), error.getMessage()), error);
        }
    }

    private TopicDescription describe(String name) {
        TopicDescription found = tryDescribe(name);
        if (found == null) {
            throw new NeardupException("topic " + name + " does not exist; create it: neardup topics create");
        }
        return found;
    }

    private TopicDescription tryDescribe(String name) {
        try {
            return admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                return null;
            }
            throw new NeardupException("topic " + name + " was not described: " + error.getCause(), error);
        } catch (InterruptedException error) {
            throw PagesProducer.interrupted(error);
        }
    }
}
