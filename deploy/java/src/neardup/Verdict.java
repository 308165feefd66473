// Generated from neardup/verdict.schema.json by deploy/java/verdict.py: do not edit.
package neardup;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.Map;

/**
 * neardup verdict, version 1. One JSON object a verdict. Verdict id = (page_id, n), within one generation and one log: only such verdicts are compared by it. Fields are only ever added within one version; absent fields are empty or false. An absent field is null, or false.
 *
 * @param pageId The page whose arrival caused the verdict; greater means later.
 * @param n 0: the page's own verdict; from 1: others that it caused (promoted, or a duplicate that had stood in for it), or that a takedown at this place of the log caused (gone, promoted).
 * @param url Normalised; of a rejected page as it was given, maybe empty.
 * @param scheme Names what shaped the sketch.
 * @param decider Names rule, thresholds and caps.
 * @param reason rejected: why. gone: 'taken down' if an operator took the page down, absent if a fetch found it gone. A takedown's verdict has the page's URL, since consumers find their row by it and an earlier verdict named it, and nothing else of the page: no title, no evidence. Delete the page's text, too. The sketch log holds its hash alone.
 * @param standing unchanged, edited, stale, rejected: the URL's effective verdict, so that the last verdict of a URL says all.
 * @param representative The page that stands for the cluster.
 * @param cluster Page id of the cluster's founder; never changes.
 * @param clusterSize Pages in the cluster after this verdict.
 * @param canonical The URL of the cluster that an index should show.
 * @param revision Counts the changes of the cluster.
 * @param contentOf same_content: the earlier page with the same main content. It may be a copy of this one that was crawled first, so do not hide this page behind it unless it is of the same owner, or older and more trusted.
 * @param replaces The URL's fetch that this one retires.
 * @param site Registrable domain.
 * @param candidatesCut More candidates than are verified.
 * @param relCanonical The URL that the page itself names by rel=canonical, where it is another than its own: in verdicts with n = 0. `canonical` is the cluster's.
 * @param score What the crawler gave the page, in 254 steps: in verdicts with n = 0.
 * @param log Topic id of the sketch log that page ids are places in: page ids of two logs are never compared. A generation that judges another one's log again has the same log and the same page ids, so compare `generation`, too. Absent in verdicts of a scan.
 * @param generation Name of the generation that judged; absent where it has none. A consumer keeps the verdicts of each generation apart.
 */
public record Verdict(
        @JsonProperty(required = true) long version,
        @JsonProperty(required = true) Kind verdict,
        @JsonProperty(required = true) long pageId,
        @JsonProperty(required = true) long n,
        @JsonProperty(required = true) String url,
        @JsonProperty(required = true) long fetchedAt,
        @JsonProperty(required = true) Coordinates coordinates,
        @JsonProperty(required = true) String scheme,
        @JsonProperty(required = true) String decider,
        String reason,
        Standing standing,
        Representative representative,
        Long cluster,
        Long clusterSize,
        String canonical,
        Long revision,
        Representative contentOf,
        Long replaces,
        Evidence evidence,
        String title,
        String site,
        String lang,
        boolean thin,
        boolean opaque,
        boolean truncated,
        boolean candidatesCut,
        String relCanonical,
        Double score,
        String log,
        String generation) {
    /** Kinds of verdicts. */
    public enum Kind {
        @JsonProperty("unique") UNIQUE,
        @JsonProperty("exact_duplicate") EXACT_DUPLICATE,
        @JsonProperty("near_duplicate") NEAR_DUPLICATE,
        @JsonProperty("same_content") SAME_CONTENT,
        @JsonProperty("unchanged") UNCHANGED,
        @JsonProperty("edited") EDITED,
        @JsonProperty("stale") STALE,
        @JsonProperty("gone") GONE,
        @JsonProperty("promoted") PROMOTED,
        @JsonProperty("rejected") REJECTED
    }

    /**
     * Coordinates. An absent field is null, or false.
     *
     * @param source Topic id, or digest of a file.
     */
    public record Coordinates(
            @JsonProperty(required = true) String source,
            @JsonProperty(required = true) long partition,
            @JsonProperty(required = true) long offset,
            @JsonProperty(required = true) long position) {}

    /**
     * Representative. An absent field is null, or false.
     */
    public record Representative(
            @JsonProperty(required = true) long pageId,
            @JsonProperty(required = true) String url,
            @JsonProperty(required = true) long fetchedAt,
            @JsonProperty(required = true) Coordinates coordinates) {}

    /**
     * Numbers of the pair that decided. More may be added. An absent field is null, or false.
     *
     * @param by The step that decided.
     * @param score The number that the step compared with its threshold, in the unit of the step.
     * @param demand The threshold of the step.
     * @param articleShare Of one article on two sites: share of the longer one that is one stretch of both.
     * @param articleTokens Words of that stretch, or about.
     * @param learnedScore By a learned model: how sure it is of a duplicate.
     * @param keptApart Of a page that stands for itself, while its text is as much like that of `nearest` as is asked: the step that told them apart.
     * @param turnedHot Index keys, family:key, that with this page have more pages than postings_max: from here on they find nobody.
     * @param reclaimed unique: from whom the page has its cluster back, and the numbers of both.
     */
    public record Evidence(
            String by,
            Double score,
            Double demand,
            Long bSimilarity,
            Long cSimilarity,
            Double tapeScore,
            Double contentScore,
            Double articleShare,
            Long articleTokens,
            boolean sameSite,
            List<Long> tokens,
            Map<String, String> vetoes,
            Map<String, Long> keys,
            Long candidates,
            List<String> langs,
            Double learnedScore,
            Map<String, Double> signals,
            Representative holder,
            String keptApart,
            Map<String, Object> nearest,
            List<String> turnedHot,
            Map<String, Object> reclaimed) {}

    /**
     * unchanged, edited, stale, rejected: the URL's effective verdict, so that the last verdict of a URL says all. An absent field is null, or false.
     */
    public record Standing(
            @JsonProperty(required = true) Kind verdict,
            Representative representative,
            Long contentOf,
            Long cluster) {}
}
