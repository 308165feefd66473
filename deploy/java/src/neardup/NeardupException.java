package neardup;

import java.util.List;

/** Base of the client's errors. A message names the URL, or topic, partition and offset, and what to do. */
public class NeardupException extends RuntimeException {
    public NeardupException(String message) {
        super(message);
    }

    public NeardupException(String message, Throwable cause) {
        super(message, cause);
    }

    /** A page whose record exceeds the topic's limit. The producer goes on. */
    public static final class RecordTooLarge extends NeardupException {
        RecordTooLarge(String message) {
            super(message);
        }
    }

    /** Pages that Kafka did not acknowledge: publish them again. */
    public static final class NotDelivered extends NeardupException {
        private static final int SHOWN_MAX = 3;
        private final transient List<Failure> failures;

        NotDelivered(String topic, List<Failure> failures, long total) {
            super(describe(topic, failures, total));
            this.failures = failures;
        }

        /** Returns the first {@link PageProducer#FAILURES_MAX} failed pages. */
        public List<Failure> failures() {
            return failures;
        }

        private static String describe(String topic, List<Failure> failures, long total) {
            StringBuilder text = new StringBuilder("%,d page%s not written to topic %s".formatted(
                    total, total == 1 ? "" : "s", topic));
            String separator = ": ";
            for (Failure failure : failures.subList(0, Math.min(SHOWN_MAX, failures.size()))) {
                text.append(separator).append(failure.url()).append(": ").append(failure.reason());
                separator = "; ";
            }
            return text.append(total > SHOWN_MAX ? "; and %,d more".formatted(total - SHOWN_MAX) : "").toString();
        }
    }

    /** A page that was not delivered. */
    public record Failure(String url, String reason) {}

    /** Verdicts were deleted before they were read, or the stored positions belong to another topic. */
    public static final class PositionLost extends NeardupException {
        PositionLost(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** A record that is no verdict, or an unreadable control record. */
    public static final class CorruptRecord extends NeardupException {
        CorruptRecord(String message, Throwable cause) {
            super(message, cause);
        }
    }
}
