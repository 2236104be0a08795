// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.File
import java.lang.management.ManagementFactory
import java.util.concurrent.{ConcurrentLinkedQueue, Semaphore}
import java.util.concurrent.atomic.AtomicReference

import scala.concurrent.{Await, ExecutionContext, Future, Promise}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success}

import sparkdstl.bench.Times
import sparkdstl.bench.driver.{BenchedRun, SealLoad}
import sparkdstl.log.coordinator.CoordinatedRuns
import sparkdstl.log.transport._

import org.apache.spark.{SecurityManager, SparkConf}
import org.apache.spark.rpc._
import org.apache.spark.sql.execution.streaming.state.dstl.transport.{
  DriverEndpoint,
  ExecutorDirectory,
  ExecutorEndpoint,
  Rpc
}

/**
 * Times that the sender measures.
 *
 * @param takeMillis from the first message until the last answer
 * @param asks       of one message, until its answer
 * @param idlePings  of an unrelated endpoint of the same driver, before the first message
 * @param pings      of the same endpoint, during the messages
 */
final case class EndpointFigures(takeMillis: Double, asks: Times, idlePings: Times, pings: Times)

/** The driver's endpoint in this process, and another process that sends the messages of tasks. */
final class MeasuredEndpoint extends AutoCloseable {
  import MeasuredEndpoint._

  private val conf = new SparkConf(false)
  private val rpc = environment("driver", conf)
  private val directory = new ExecutorDirectory
  private val sender = Promise[RpcEndpointRef]()
  private var endpoint = Option.empty[RpcEndpointRef]
  rpc.setupEndpoint(Unrelated, new Pinged(rpc, sender)): Unit
  private val process = start(rpc.address)
  private val generator = Await.result(sender.future, 1.minute)

  def executors: ExecutorLink = directory

  /** Replaces the runs that the endpoint serves. */
  def use(runs: CoordinatedRuns): Unit = {
    endpoint.foreach(rpc.stop)
    endpoint = Some(rpc.setupEndpoint(Rpc.DriverName, new DriverEndpoint(rpc, runs.answer, runs, directory)))
  }

  /** Makes the messages of a batch, in the other process. */
  def prepare(batch: Long, load: SealLoad): Unit =
    generator.askSync[Boolean](("prepare", batch, load), patience): Unit

  /** Sends them from the other process. */
  def send(): EndpointFigures = {
    val values = generator.askSync[Array[Double]]("send", patience)
    def times(at: Int): Times = Times(values(at), values(at + 1), values(at + 2))
    EndpointFigures(values(0), times(1), times(4), times(7))
  }

  override def close(): Unit = {
    process.destroy()
    process.waitFor(10, java.util.concurrent.TimeUnit.SECONDS): Unit
    rpc.shutdown()
  }
}

object MeasuredEndpoint {
  private[dstl] val Unrelated = "Unrelated"
  private val patience = new RpcTimeout(10.minutes, "the benchmark's own limit")

  private[dstl] def environment(name: String, conf: SparkConf): RpcEnv =
    RpcEnv.create(name, "127.0.0.1", "127.0.0.1", 0, conf, new SecurityManager(conf), 0, clientMode = false)

  /** Starts another Java process, with the options of this one, which connects to the address. */
  private def start(driver: RpcAddress): Process = {
    val runtime = ManagementFactory.getRuntimeMXBean
    val jars = Seq[Class[_]](classOf[SealLoad], classOf[DriverEndpoint], classOf[SparkConf])
      .map(of => new File(of.getProtectionDomain.getCodeSource.getLocation.toURI).getPath)
    val classPath = (jars ++ runtime.getClassPath.split(File.pathSeparator)).distinct.mkString(File.pathSeparator)
    val java = new File(System.getProperty("java.home"), "bin/java").getPath
    val options = runtime.getInputArguments.asScala.toSeq
    val main = SendingProcess.getClass.getName.stripSuffix("$")
    new ProcessBuilder((Seq(java) ++ options ++ Seq("-cp", classPath, main, driver.host, driver.port.toString)).asJava)
      .redirectError(ProcessBuilder.Redirect.INHERIT).redirectOutput(ProcessBuilder.Redirect.INHERIT).start()
  }

  /** Answers pings, and receives the sender's address. */
  private final class Pinged(override val rpcEnv: RpcEnv, sender: Promise[RpcEndpointRef]) extends RpcEndpoint {
    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
      case "ping" => context.reply(true)
      case from: RpcEndpointRef =>
        sender.trySuccess(from)
        context.reply(true)
    }
  }
}

/** The process that sends. */
object SendingProcess {
  private val timeout = new RpcTimeout(2.minutes, "the benchmark's own limit")
  // Messages without an answer.
  private val InFlight = 1000

  def main(arguments: Array[String]): Unit = {
    val conf = new SparkConf(false)
    val driver = RpcAddress(arguments(0), arguments(1).toInt)
    val rpc = MeasuredEndpoint.environment("sender", conf)
    // With a separate connection.
    val pinging = MeasuredEndpoint.environment("pinging", conf)
    val self = rpc.setupEndpoint("sender", new Sender(rpc, driver, pinging))
    rpc.setupEndpointRef(driver, MeasuredEndpoint.Unrelated).askSync[Boolean](self): Unit
    // Ends with its parent.
    ProcessHandle.current().parent().ifPresent(parent => parent.onExit().thenRun(() => sys.exit(0)): Unit)
    rpc.awaitTermination()
  }

  private final class Sender(override val rpcEnv: RpcEnv, driver: RpcAddress, pinging: RpcEnv) extends RpcEndpoint {
    private val id = RunId(BenchedRun.Location.root.toString, SealLoad.Run)
    private val seals = new AtomicReference[Vector[(String, Array[Byte])]](Vector.empty)
    private val uploads = new ConcurrentLinkedQueue[(String, Array[Byte])]
    private lazy val endpoint = rpcEnv.setupEndpoint("executors", new ExecutorEndpoint(rpcEnv, receive))

    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
      case ("prepare", batch: Long, load: SealLoad) =>
        seals.set(load.seals(batch).map { case (from, seal) => from -> MessageCodec.encode(seal) }.toVector)
        uploads.clear()
        load.uploaded(batch).foreach { case (executor, message) =>
          uploads.add(executor -> MessageCodec.encode(message))
        }
        System.gc()
        context.reply(true)
      case "send" =>
        // On a separate thread: the dispatcher's thread stays free.
        val thread = new Thread(
          () =>
            try context.reply(send())
            catch { case e: Exception => context.sendFailure(Rpc.portable(e)) },
          "sending"
        )
        thread.setDaemon(true)
        thread.start()
    }

    private def send(): Array[Double] = {
      val idle = new Pings(pinging.setupEndpointRef(driver, MeasuredEndpoint.Unrelated))
      Thread.sleep(1000)
      val idleTimes = idle.end()
      val to = rpcEnv.setupEndpointRef(driver, Rpc.DriverName)
      val pings = new Pings(pinging.setupEndpointRef(driver, MeasuredEndpoint.Unrelated))
      val free = new Semaphore(InFlight)
      val failed = new AtomicReference[Throwable]
      val times = new ConcurrentLinkedQueue[java.lang.Double]
      val began = System.nanoTime()
      seals.get.foreach { case (executor, bytes) =>
        free.acquire()
        val asked = System.nanoTime()
        ask(to, executor, bytes).onComplete { answer =>
          times.add((System.nanoTime() - asked) / 1e6): Unit
          answer match {
            case Success(_: FromDriver.Accepted) =>
            case Success(other) => failed.set(new IllegalStateException(s"the driver answered $other"))
            case Failure(error) => failed.set(error)
          }
          free.release()
        }(ExecutionContext.parasitic)
      }
      free.acquire(InFlight)
      val took = (System.nanoTime() - began) / 1e6
      val pinged = pings.end()
      Option(failed.get).foreach(throw _)
      Array(took) ++ Seq(Times.of(times.asScala.map(_.doubleValue).toSeq), idleTimes, pinged)
        .flatMap(of => Seq(of.p50, of.p99, of.max))
    }

    /** The barrier tells executors to flush: the uploads of changes that are not inline are reported then. */
    private def receive(from: RunId, message: ToExecutor): Unit =
      if (from == id && message == ToExecutor.Flush) {
        val to = rpcEnv.setupEndpointRef(driver, Rpc.DriverName)
        Iterator.continually(uploads.poll()).takeWhile(_ != null).foreach { case (executor, bytes) =>
          ask(to, executor, bytes).failed.foreach(_.printStackTrace())(ExecutionContext.parasitic)
        }
      }

    private def ask(to: RpcEndpointRef, executor: String, bytes: Array[Byte]): Future[FromDriver] = {
      val request: Rpc.Request = (executor, id.root, id.run.toString, bytes, endpoint)
      to.ask[Array[Byte]](request, timeout).map(MessageCodec.decodeFromDriver)(ExecutionContext.parasitic)
    }
  }

  /** Asks an endpoint every ten milliseconds. */
  private final class Pings(to: RpcEndpointRef) {
    private val times = new ConcurrentLinkedQueue[java.lang.Double]
    @volatile private var ended = false
    private val thread = new Thread(
      () =>
        while (!ended) {
          val began = System.nanoTime()
          to.askSync[Boolean]("ping", timeout): Unit
          times.add((System.nanoTime() - began) / 1e6): Unit
          Thread.sleep(10)
        },
      "pinging"
    )
    thread.setDaemon(true)
    thread.start()

    def end(): Times = {
      ended = true
      thread.join()
      Times.of(times.asScala.map(_.doubleValue).toSeq)
    }
  }
}
