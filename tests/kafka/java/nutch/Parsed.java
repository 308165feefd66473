import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.nutch.parse.HtmlParseFilter;
import org.apache.nutch.protocol.Content;

/** Gives a page to the filter that a plugin.xml names, as Nutch does while it parses. */
public final class Parsed {
    public static void main(String[] arguments) throws Exception {
        if (!HtmlParseFilter.X_POINT_ID.equals(arguments[0])) {
            throw new IllegalStateException("the extension point is " + HtmlParseFilter.X_POINT_ID);
        }
        HtmlParseFilter filter = (HtmlParseFilter) Class.forName(arguments[1]).getDeclaredConstructor().newInstance();
        filter.setConf(new Configuration(Map.of("neardup.bootstrap", arguments[2], "neardup.topic", arguments[3])));
        Content content = Content.read(new java.io.DataInputStream(System.in));
        filter.filter(content, null, null, null);
        Runtime.getRuntime().halt(0); // as a task's process may: nothing is left to be sent
    }
}
