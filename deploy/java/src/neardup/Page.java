package neardup;

import java.time.Instant;

/**
 * One fetch of one URL. Publish answers to GET alone, and none whose connection was lost: the sketchers cannot tell,
 * and such an answer would replace the page.
 *
 * @param url as the crawler has it
 * @param body bytes as fetched; null for a tombstone
 * @param contentType the HTTP header, with its charset; null or "" if unknown
 * @param fetchedAt null: the time of arrival at Kafka
 * @param status of HTTP; 404 and 410 mean that the page is gone, and the sketchers reject others than 2xx,
 *     and those that bring no page or a part of it (204, 205, 206, 207, 208, 226)
 * @param score the crawler's own, 0 to 1, for the choice of canonical pages; null if there is none
 */
public record Page(String url, byte[] body, String contentType, Instant fetchedAt, int status, Double score) {
    public Page {
        if (url == null || url.isEmpty()) {
            throw new IllegalArgumentException("a page without a URL cannot be published");
        }
        if (score != null && !(score >= 0 && score <= 1)) {
            throw new IllegalArgumentException(url + ": score " + score + " is not a number from 0 to 1");
        }
    }

    public Page(String url, byte[] body, String contentType, Instant fetchedAt) {
        this(url, body, contentType, fetchedAt, 200, null);
    }

    /** Returns the tombstone of a URL whose page no longer exists. fetchedAt may be null. */
    public static Page gone(String url, Instant fetchedAt) {
        return new Page(url, null, null, fetchedAt);
    }
}
