package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap}

import scala.concurrent.ExecutionContext
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success}

import org.apache.spark.rpc.{RpcAddress, RpcEndpointRef}
import org.apache.spark.util.ThreadUtils

/** How the driver reaches the executors that hold bytes for it. Thread-safe. */
private[dstl] final class ExecutorDirectory {
  private case class Known(endpoint: RpcEndpointRef, address: RpcAddress)

  private val executors = new ConcurrentHashMap[String, Known]
  private implicit val sameThread: ExecutionContext = ThreadUtils.sameThread

  def register(executor: String, endpoint: RpcEndpointRef, address: RpcAddress): Unit =
    executors.put(executor, Known(endpoint, address)): Unit

  /** Removes and names the executors at an address whose connection is gone. */
  def disconnected(address: RpcAddress): Seq[String] =
    executors.asScala.collect {
      case (id, known) if known.address == address && executors.remove(id, known) => id
    }.toSeq

  /** Asks an executor to upload whatever waits for `run`, at once. Completes when it has begun. */
  def flush(executor: String, run: UUID): CompletableFuture[Unit] = {
    val result = new CompletableFuture[Unit]
    Option(executors.get(executor)) match {
      case None => result.completeExceptionally(new IllegalStateException(s"executor $executor is not connected")): Unit
      case Some(known) =>
        known.endpoint.ask[Array[Byte]]((Wire.Flush, "", run.toString, Wire.Done)).onComplete {
          case Success(_) => result.complete(()): Unit
          case Failure(e) => result.completeExceptionally(e): Unit
        }
    }
    result
  }
}
