// Generated from neardup/verdict.schema.json by deploy/java/verdict.py: do not edit.
package neardup;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.Map;

/**
 * neardup verdict, version 1. One JSON object per verdict. (page_id, n) is the id of a verdict within one generation and one log; ids of different generations or logs are not comparable. Within one version fields are only added. Absent fields are empty or false. An absent field is null, or false.
 *
 * @param pageId The page whose arrival caused the verdict; greater means later.
 * @param n 0: the page's own verdict; from 1: other verdicts that the page caused (promoted; or on a duplicate that had represented the cluster in its absence), or that a takedown at this position of the log caused (gone, promoted).
 * @param url Normalised; as the crawler gave it, possibly empty, if the page was rejected for its URL.
 * @param scheme Digest of the parameters of the sketch.
 * @param decider Digest of rule, thresholds and limits.
 * @param reason rejected: why. gone: 'taken down' if an operator took the page down, absent if a fetch found it gone. The verdict of a takedown has the page's URL, by which consumers find their row, but no title and no evidence. Delete the page's text, too. The sketch log has only a hash of the URL.
 * @param standing unchanged, edited, stale, rejected: the URL's effective verdict, so that an index need keep only the last verdict of each URL, and the last promoted page of each cluster, which represents it.
 * @param representative The page that represents the cluster; of promoted, the page itself.
 * @param cluster Page id of the cluster's founder; never changes.
 * @param clusterSize Pages in the cluster after this verdict.
 * @param canonical The URL of the cluster that an index may show in the place of the representative's: the one that the representative names by rel=canonical, if it is a member; otherwise the representative's own.
 * @param revision Counts the changes of the cluster.
 * @param contentOf same_content: the earlier page with the same main content. It may be a copy of this page that was crawled first. Hide this page behind it only if both have the same owner, or if the other one is older and more trusted.
 * @param replaces The earlier fetch of the URL that this one replaces.
 * @param site Registrable domain.
 * @param shell The words of the page come from a script, or from a page to which it sends a browser: render it, and publish it again. Until then it has exact duplicates of its owner alone.
 * @param candidatesCut The page had more candidates than were verified.
 * @param relCanonical The page's rel=canonical, if it is not the page's own URL; in verdicts with n = 0. `canonical` is the URL of the cluster.
 * @param score The score that the crawler gave the page, in 254 steps; in verdicts with n = 0.
 * @param log Topic id of the sketch log. Page ids are positions in it, so page ids of two logs are not comparable. A generation that judges the log of another one has the same log and page ids, so compare `generation`, too. Absent in verdicts of a scan.
 * @param generation Name of the generation that judged; absent if it has none. A consumer keeps the verdicts of each generation separately.
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
        boolean shell,
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
     * @param by The step that accepted the pair, or the name under which a step refused it. digest: the words are equal.
     * @param score The number that the step compared with its threshold, in the unit of the step. Of a veto, the tape score: a refused pair may have a score above the demand.
     * @param demand The threshold of the step.
     * @param bSimilarity Supershingles that both pages have, of 6.
     * @param cSimilarity Equal bits of the simhashes, of 384.
     * @param tapeScore Share of the sampled words that both pages have in the same order.
     * @param contentScore The same of the main contents.
     * @param articleShare For an article on two sites: the longest common stretch, as a share of the longer article.
     * @param adds For a page of another owner that was crawled earlier and has more text: how much it adds, as a share of this page. It may be a copy of this page with text added, or the longer original.
     * @param articleTokens Words of that stretch, about.
     * @param tokens Of this page, and of the other.
     * @param vetoes What is different in the titles or headings; unproved: perhaps, as far as the sketches tell.
     * @param gaps One site: runs of sampled words in which the texts differ, tokens with digits in them, and words beyond three for each such token.
     * @param siblings Pages of the same owner with the page's title and heading: those whose URLs end otherwise, and those whose URLs end alike.
     * @param keys Index keys that both pages have, by family.
     * @param candidates Earlier pages that were compared with this one.
     * @param langs Languages that the pages declare: this page's, the other's.
     * @param learnedScore Confidence of a learned model that the page is a duplicate.
     * @param holder exact_duplicate: the page with the same content.
     * @param keptApart For a page that represents itself although its text is similar enough to that of `nearest`: the name of the refusal, as in `by`.
     * @param nearest For a page without duplicates: the most similar candidate, the refusal, and the numbers of the pair. Absent without candidates.
     * @param turnedHot Index keys, family:key, that this page gave more than postings_max pages: from now on they give no candidates.
     * @param reclaimed unique: the page that gave the cluster back, and the numbers of both.
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
            Double adds,
            Long articleTokens,
            boolean sameSite,
            List<Long> tokens,
            Map<String, String> vetoes,
            List<Long> gaps,
            List<Long> siblings,
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
     * unchanged, edited, stale, rejected: the URL's effective verdict, so that an index need keep only the last verdict of each URL, and the last promoted page of each cluster, which represents it. An absent field is null, or false.
     */
    public record Standing(
            @JsonProperty(required = true) Kind verdict,
            Representative representative,
            Long contentOf,
            Long cluster) {}
}
