// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.io.File
import java.util.EnumSet

import scala.io.Source
import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.SafeModeAction
import org.apache.hadoop.hdfs.{DistributedFileSystem, HdfsConfiguration, MiniDFSCluster}
import org.apache.hadoop.hdfs.protocol.HdfsConstants
import org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType
import org.apache.hadoop.util.functional.RemoteIterators

/**
 * An HDFS of three datanodes on the loopback interface: `MiniHdfs <directory> <port> <port of WebHDFS> [secured]`, the last for
 * one with [[Kerberos]].
 *
 * Prints `ready` once files can be written, then runs the commands in its standard input, one per line, and answers each with
 * `done <command>`; ends with its input. Commands: `restart-namenode`, `enter-safe-mode`, `leave-safe-mode`,
 * `stop-datanode`, `stop-datanodes` (all of them), `restart-datanodes` (all that were stopped), `list-open-files`, which says
 * `open <path>` of each that is being written, and `expire-leases`, which takes files from writers that are silent.
 */
object MiniHdfs {
  private val Datanodes = 3
  private val Written = EnumSet.of(OpenFilesType.ALL_OPEN_FILES)
  private val PollMillis = 100L
  private val HardLimitMillis = 20L * 60 * 1000

  def main(arguments: Array[String]): Unit = arguments match {
    case Array(directory, port, webPort) => serve(directory, port.toInt, webPort.toInt, None)
    case Array(directory, port, webPort, "secured") =>
      serve(directory, port.toInt, webPort.toInt, Some(new Kerberos(new File(directory))))
    case _ => throw new IllegalArgumentException("usage: MiniHdfs <directory> <port> <port of WebHDFS> [secured]")
  }

  private def serve(directory: String, port: Int, webPort: Int, kerberos: Option[Kerberos]): Unit = {
    System.setProperty("test.build.data", directory)
    val configured = configuration()
    kerberos.foreach(_.secure(configured))
    val cluster = new MiniDFSCluster.Builder(configured, new File(directory))
      .nameNodePort(port)
      .nameNodeHttpPort(webPort)
      .numDataNodes(Datanodes)
      .build()
    cluster.waitActive()
    kerberos.foreach(_.makeHome(cluster.getFileSystem))
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
    // Another writer can take over a dead writer's open file after seconds, not after minutes.
    made.setLong("dfs.namenode.lease-recheck-interval-ms", 500)
    made.setInt("dfs.heartbeat.interval", 1)
    made.setInt("dfs.namenode.heartbeat.recheck-interval", 1000)
    made.set("dfs.namenode.safemode.extension", "0")
    // The user who runs the tests owns the files.
    made.setBoolean("dfs.permissions.enabled", true)
    made
  }

  private class Commands(cluster: MiniDFSCluster) {
    private var stopped: Seq[MiniDFSCluster.DataNodeProperties] = Nil

    def run(command: String): Unit = command match {
      case "restart-namenode" => cluster.restartNameNode(true)
      case "enter-safe-mode" => safeMode(SafeModeAction.ENTER)
      case "leave-safe-mode" => safeMode(SafeModeAction.LEAVE)
      case "stop-datanode" => stop(1)
      case "stop-datanodes" => stop(Datanodes)
      case "restart-datanodes" =>
        stopped.foreach(cluster.restartDataNode(_, true))
        stopped = Nil
        cluster.waitActive()
      case "list-open-files" => openFiles().foreach(path => println(s"open $path"))
      case "expire-leases" => expireLeases()
    }

    private def stop(count: Int): Unit = stopped ++= Seq.fill(count)(cluster.stopDataNode(0))

    private def openFiles(): Seq[String] =
      RemoteIterators.toList(cluster.getFileSystem.listOpenFiles(Written, "/")).asScala.map(_.getFilePath).toSeq

    private def expireLeases(): Unit = {
      cluster.setLeasePeriod(0, 0)
      while (openFiles().nonEmpty) Thread.sleep(PollMillis)
      cluster.setLeasePeriod(HdfsConstants.LEASE_SOFTLIMIT_PERIOD, HardLimitMillis)
    }

    private def safeMode(action: SafeModeAction): Unit = {
      val files: DistributedFileSystem = cluster.getFileSystem
      files.setSafeMode(action): Unit
    }
  }
}
