// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.transport

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.{ExecutionContext, Future}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success}
import scala.util.control.NonFatal

import sparkdstl.log.coordinator.CoordinatedRuns
import sparkdstl.log.error.Causes
import sparkdstl.log.failpoints.FailPoints
import sparkdstl.log.transport._

import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.rpc._
import org.apache.spark.util.RpcUtils

/**
 * The form of messages: tuples of JDK and Spark classes, because an executor's deserializer does not see classes from
 * `spark.jars`; the message itself is bytes.
 */
private[dstl] object Rpc {
  val DriverName = "DstlDriver"
  val ExecutorName = "DstlExecutor"

  /** To the driver: executor, checkpoint root, run, message, and where the executor can be reached. */
  type Request = (String, String, String, Array[Byte], RpcEndpointRef)

  /** To an executor: checkpoint root, run, message. */
  type Notice = (String, String, Array[Byte])

  /** Shorter than Spark's timeout, because the log sends a message again if it has no answer. */
  def askTimeout(env: SparkEnv): RpcTimeout = {
    val configured = RpcUtils.askRpcTimeout(env.conf)
    if (configured.duration <= AskAgainAfter) configured
    else new RpcTimeout(AskAgainAfter, "the log's own limit, after which it asks again")
  }

  private val AskAgainAfter = 15.seconds

  /** Whether a call failed because there is no endpoint of that name. Spark's exception for it is not visible here. */
  def meansNoEndpoint(error: Throwable): Boolean =
    Causes.of(error).exists(_.getClass.getName == "org.apache.spark.rpc.RpcEndpointNotFoundException")

  /** Spark serializes exceptions too, so they must be of classes that executors' RPC sees. */
  def portable(error: Throwable): Throwable = new java.io.IOException(s"${error.getClass.getName}: ${error.getMessage}")
}

/** The driver's endpoint: decodes the messages of executors, and passes them to their run. */
private[dstl] final class DriverEndpoint(
    override val rpcEnv: RpcEnv,
    answer: (String, RunId, ToDriver) => Future[FromDriver],
    runs: CoordinatedRuns,
    executors: ExecutorDirectory,
    ended: () => Unit = () => ()
) extends RpcEndpoint with Logging {

  /** The Spark environment ends. */
  override def onStop(): Unit = ended()

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case (executor: String, root: String, run: String, message: Array[Byte], from: RpcEndpointRef) =>
      try {
        executors.note(executor, from, context.senderAddress)
        stoppable(executor, RunId(root, UUID.fromString(run)), MessageCodec.decodeToDriver(message)).onComplete {
          case Success(answer) => context.reply(MessageCodec.encode(answer))
          case Failure(error) => context.sendFailure(Rpc.portable(error))
        }(ExecutionContext.parasitic)
      } catch { case NonFatal(e) => context.sendFailure(Rpc.portable(e)) }
  }

  private def stoppable(executor: String, run: RunId, message: ToDriver): Future[FromDriver] = message match {
    case seal: ToDriver.Seal if FailPoints.ofTests.nonEmpty =>
      FailPoints.ofTests.get.before("driver.before-first-seal", seal.batch)(answer(executor, run, seal))
    case _ => answer(executor, run, message)
  }

  override def onDisconnected(address: RpcAddress): Unit =
    executors.disconnected(address).foreach { executor =>
      logInfo(s"Executor $executor is gone")
      runs.executorLost(executor, "it is gone")
    }
}

/** The addresses of the executors that have sent a message. Thread-safe. */
private[dstl] final class ExecutorDirectory extends ExecutorLink {
  private case class Known(endpoint: RpcEndpointRef, address: RpcAddress)

  private val executors = new ConcurrentHashMap[String, Known]

  def note(executor: String, endpoint: RpcEndpointRef, address: RpcAddress): Unit =
    executors.put(executor, Known(endpoint, address)): Unit

  /** Forgets and names the executors at an address whose connection is gone. */
  def disconnected(address: RpcAddress): Seq[String] =
    executors.asScala.collect {
      case (id, known) if known.address == address && executors.remove(id, known) => id
    }.toVector

  override def tell(executor: String, run: RunId, message: ToExecutor): Future[Unit] =
    Option(executors.get(executor)) match {
      case None => Future.failed(new IllegalStateException(s"executor $executor is not connected"))
      case Some(known) =>
        val notice: Rpc.Notice = (run.root, run.run.toString, MessageCodec.encode(message))
        known.endpoint.ask[Array[Byte]](notice).map(_ => ())(ExecutionContext.parasitic)
    }
}

/** An executor's endpoint: receives the driver's messages. */
private[dstl] final class ExecutorEndpoint(override val rpcEnv: RpcEnv, receive: (RunId, ToExecutor) => Unit)
    extends RpcEndpoint {

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case (root: String, run: String, message: Array[Byte]) =>
      try {
        receive(RunId(root, UUID.fromString(run)), MessageCodec.decodeToExecutor(message))
        context.reply(Array.emptyByteArray)
      } catch { case NonFatal(e) => context.sendFailure(Rpc.portable(e)) }
  }
}

/** An executor's link to the driver. */
private[dstl] final class RpcDriverLink(driver: RpcEndpointRef, self: RpcEndpointRef, timeout: RpcTimeout)
    extends DriverLink {

  override def ask(executor: String, run: RunId, message: ToDriver): Future[FromDriver] = {
    val request: Rpc.Request = (executor, run.root, run.run.toString, MessageCodec.encode(message), self)
    driver.ask[Array[Byte]](request, timeout).map(MessageCodec.decodeFromDriver)(ExecutionContext.parasitic)
  }
}
