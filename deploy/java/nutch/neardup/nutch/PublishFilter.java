package neardup.nutch;

import java.util.Map;
import neardup.Page;
import neardup.PagesProducer;
import org.apache.hadoop.conf.Configuration;
import org.apache.nutch.parse.HTMLMetaTags;
import org.apache.nutch.parse.HtmlParseFilter;
import org.apache.nutch.parse.ParseResult;
import org.apache.nutch.protocol.Content;
import org.w3c.dom.DocumentFragment;

/**
 * Publishes each HTML page that Nutch parses, as it was fetched, and waits until Kafka has it. A page that Kafka does
 * not take fails to parse, so a later parse of the segment publishes it again; neardup calls a second copy unchanged.
 * A parse filter, since an indexing filter has the page's text only.
 */
public final class PublishFilter implements HtmlParseFilter {
    private Configuration conf;
    private PagesProducer producer;

    @Override
    public ParseResult filter(Content content, ParseResult result, HTMLMetaTags tags, DocumentFragment document) {
        String header = content.getMetadata().get("Content-Type"); // with the charset
        String type = header == null ? content.getContentType() : header;
        producer().deliver(new Page(content.getUrl(), content.getContent(), type, null));
        return result;
    }

    private synchronized PagesProducer producer() {
        if (producer == null) {
            String bootstrap = conf.get("neardup.bootstrap");
            if (bootstrap == null) {
                throw new IllegalArgumentException("neardup.bootstrap is not set: name Kafka's brokers in nutch-site.xml");
            }
            producer = new PagesProducer(bootstrap, conf.get("neardup.topic", "pages"), Map.of("linger.ms", 0));
        }
        return producer;
    }

    @Override
    public void setConf(Configuration conf) {
        this.conf = conf;
    }

    @Override
    public Configuration getConf() {
        return conf;
    }
}
