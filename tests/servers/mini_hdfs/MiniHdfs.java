import java.io.File;
import java.io.PrintWriter;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * A small HDFS for tests: one name node and one data node in this process, in the folder that is given.
 *
 * Writes "<RPC port> <HTTP port>" to the file `ports` in that folder when it is ready. A line "restart" on the standard
 * input restarts the name node, and the file is written again.
 */
public final class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        Configuration settings = new Configuration();
        settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(folder, "dfs").getAbsolutePath());
        settings.setBoolean("dfs.permissions.enabled", false);
        settings.setInt("dfs.replication", 1);
        settings.setInt("dfs.namenode.safemode.extension", 0);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings).numDataNodes(1).build();
        cluster.waitActive();
        say(folder, cluster);
        for (int read, previous = 0; (read = System.in.read()) >= 0; previous = read) {
            if (read == '\n' && previous == 't') {
                cluster.restartNameNode(true);
                say(folder, cluster);
            }
        }
        cluster.shutdown(true);
        System.exit(0);
    }

    private static void say(File folder, MiniDFSCluster cluster) throws Exception {
        File unfinished = new File(folder, "ports.unfinished");
        try (PrintWriter writer = new PrintWriter(unfinished, "UTF-8")) {
            writer.print(cluster.getNameNodePort() + " " + cluster.getNameNode().getHttpAddress().getPort());
        }
        unfinished.renameTo(new File(folder, "ports"));
    }
}
