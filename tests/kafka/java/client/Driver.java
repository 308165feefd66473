import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import neardup.NeardupException;
import neardup.Page;
import neardup.PagesProducer;
import neardup.Verdict;
import neardup.VerdictReader;

/** Both halves of the client, driven by lines of JSON: what a test sends and what it gets back. */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .setDefaultPropertyInclusion(JsonInclude.Include.NON_NULL);
    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));

    public static void main(String[] arguments) throws Exception {
        try {
            if (arguments[0].equals("publish")) {
                publish(arguments[1], arguments[2]);
            } else {
                read(arguments[1], arguments[2], arguments[3]);
            }
        } catch (NeardupException error) {
            say(Map.of("error", error.getClass().getSimpleName(), "message", error.getMessage()));
        }
    }

    private static void say(Object value) throws Exception {
        System.out.println(JSON.writeValueAsString(value));
    }

    /** Publishes a page for each line. */
    private static void publish(String bootstrap, String topic) throws Exception {
        try (PagesProducer pages = new PagesProducer(bootstrap, topic, Map.of("delivery.timeout.ms", 3_000,
                "request.timeout.ms", 1_000, "max.block.ms", 3_000))) {
            say(Map.of("ready", true));
            for (String line = IN.readLine(); line != null; line = IN.readLine()) {
                JsonNode page = JSON.readTree(line);
                byte[] body = page.hasNonNull("body") ? page.get("body").binaryValue() : null;
                Instant fetched = page.hasNonNull("fetched_at") ? Instant.ofEpochMilli(page.get("fetched_at").asLong()) : null;
                Double score = page.hasNonNull("score") ? page.get("score").asDouble() : null;
                try {
                    pages.publish(new Page(page.get("url").asText(), body, page.get("content_type").asText(), fetched,
                            page.get("status").asInt(), score));
                } catch (NeardupException.RecordTooLarge | IllegalArgumentException error) {
                    say(Map.of("error", error.getClass().getSimpleName(), "message", error.getMessage()));
                }
            }
        }
    }

    /** Reads until a line asks for the end; each line that asks for the table gets it, by URL of each generation. */
    private static void read(String bootstrap, String topic, String control) throws Exception {
        Map<String, Long> positions = new HashMap<>();
        JSON.readTree(IN.readLine()).properties().forEach(each -> positions.put(each.getKey(), each.getValue().asLong()));
        Map<String, Map<String, Verdict>> tables = new TreeMap<>();
        try (VerdictReader reader = new VerdictReader(bootstrap, topic, control, positions, Map.of())) {
            while (true) {
                VerdictReader.Batch batch = reader.read(Duration.ofMillis(100));
                Map<String, Verdict> table = tables.computeIfAbsent(batch.generation(), name -> new TreeMap<>());
                for (Verdict verdict : batch.verdicts()) {
                    table.merge(verdict.url(), verdict, (held, fresh) -> VerdictReader.newer(fresh, held) ? fresh : held);
                }
                if (IN.ready()) {
                    String wanted = IN.readLine();
                    if (wanted.equals("end")) {
                        return;
                    }
                    Map<String, String> duplicates = new TreeMap<>();
                    table.forEach((url, verdict) -> {
                        if (VerdictReader.duplicateOf(verdict) != null) {
                            duplicates.put(url, VerdictReader.duplicateOf(verdict));
                        }
                    });
                    say(Map.of("generation", batch.generation(), "complete", batch.complete(), "verdicts", table,
                            "positions", batch.positions(), "duplicates", duplicates));
                }
            }
        }
    }
}
