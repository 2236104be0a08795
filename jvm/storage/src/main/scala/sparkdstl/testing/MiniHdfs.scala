package sparkdstl.testing

import java.io.File
import scala.io.Source

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.SafeModeAction
import org.apache.hadoop.hdfs.{DistributedFileSystem, HdfsConfiguration, MiniDFSCluster}

/**
 * An HDFS of three datanodes on the loopback interface: `MiniHdfs <directory> <port> <port of WebHDFS>`.
 *
 * Says `ready` once files can be written, then does what its standard input says, one command a line, answered by
 * `done <command>`; ends with its input. Commands: `restart-namenode`, `enter-safe-mode`, `leave-safe-mode`,
 * `stop-datanode`, `restart-datanode`.
 */
object MiniHdfs {
  private val Datanodes = 3

  def main(arguments: Array[String]): Unit = arguments match {
    case Array(directory, port, webPort) => serve(directory, port.toInt, webPort.toInt)
    case _ => throw new IllegalArgumentException("usage: MiniHdfs <directory> <port> <port of WebHDFS>")
  }

  private def serve(directory: String, port: Int, webPort: Int): Unit = {
    System.setProperty("test.build.data", directory)
    val cluster = new MiniDFSCluster.Builder(configuration(), new File(directory))
      .nameNodePort(port)
      .nameNodeHttpPort(webPort)
      .numDataNodes(Datanodes)
      .build()
    cluster.waitActive()
    println("ready")
    val commands = new Commands(cluster)
    Source.stdin.getLines().foreach { command =>
      commands.run(command)
      println(s"done $command")
    }
    cluster.shutdown()
  }

  private def configuration(): Configuration = {
    val made = new HdfsConfiguration()
    // A file that a dead writer left open is another's after seconds, not after minutes.
    made.setLong("dfs.namenode.lease-recheck-interval-ms", 500)
    made.setInt("dfs.heartbeat.interval", 1)
    made.setInt("dfs.namenode.heartbeat.recheck-interval", 1000)
    made.set("dfs.namenode.safemode.extension", "0")
    // Whoever runs the tests is who owns the files.
    made.setBoolean("dfs.permissions.enabled", true)
    made
  }

  private class Commands(cluster: MiniDFSCluster) {
    private var stopped: Option[MiniDFSCluster.DataNodeProperties] = None

    def run(command: String): Unit = command match {
      case "restart-namenode" => cluster.restartNameNode(true)
      case "enter-safe-mode" => safeMode(SafeModeAction.ENTER)
      case "leave-safe-mode" => safeMode(SafeModeAction.LEAVE)
      case "stop-datanode" => stopped = Some(cluster.stopDataNode(0))
      case "restart-datanode" =>
        stopped.foreach(cluster.restartDataNode(_, true))
        stopped = None
        cluster.waitActive()
    }

    private def safeMode(action: SafeModeAction): Unit = {
      val files: DistributedFileSystem = cluster.getFileSystem
      files.setSafeMode(action): Unit
    }
  }
}
