package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import scala.concurrent.Future
import scala.util.control.NonFatal

import sparkdstl.log.format.SegmentKey

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.util.RpcUtils

/**
 * The executor's way to the coordinator of one run. Every call but `report` waits for the driver's answer, within
 * Spark's `spark.rpc.askTimeout`.
 */
private[dstl] final class CoordinatorClient(driver: RpcEndpointRef, root: String, run: UUID) {

  def open(): OpenReply = Wire.decodeOpenReply(ask(Wire.Open, Wire.Done))

  def seal(request: SealRequest): SealReply = Wire.decodeSealReply(ask(Wire.Seal, Wire.encodeSeal(request)))

  def list(storeDirectory: String): Seq[ListedSegment] =
    Wire.decodeListing(ask(Wire.ListSegments, Wire.encodeText(storeDirectory)))

  /** False if the segment is not in the log. */
  def release(key: SegmentKey): Boolean = Wire.decodeFlag(ask(Wire.Release, Wire.encodeKey(key)))

  def lastBarrier(): Option[BarrierReport] = Wire.decodeBarrier(ask(Wire.LastBarrier, Wire.Done))

  /** Tells how an upload ended. */
  def report(report: UploadReport): Future[Array[Byte]] =
    driver.ask[Array[Byte]]((Wire.Uploaded, root, run.toString, Wire.encodeReport(report)))

  /** Makes this executor known, so that the driver can ask it to upload what it holds. */
  def register(executor: String, endpoint: RpcEndpointRef): Unit =
    driver.askSync[Array[Byte]]((Wire.Register, executor, endpoint)): Unit

  private def ask(operation: String, payload: Array[Byte]): Array[Byte] =
    driver.askSync[Array[Byte]]((operation, root, run.toString, payload))
}

private[dstl] object CoordinatorClient {

  /** The client, or `None` if the driver has no coordinator: no query there uses [[DstlCheckpointFileManager]]. */
  def connect(env: SparkEnv, root: String, run: UUID): Option[CoordinatorClient] =
    endpoint(env).map(new CoordinatorClient(_, root, run))

  private def endpoint(env: SparkEnv): Option[RpcEndpointRef] =
    try Some(RpcUtils.makeDriverRef(CoordinatorEndpoint.Name, env.conf, env.rpcEnv))
    catch { case NonFatal(e) if meansNoEndpoint(e) => None }

  /** Whether a call failed because the driver has no endpoint of that name. Spark's exception for it is not visible here. */
  def meansNoEndpoint(error: Throwable): Boolean =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(20)
      .exists(_.getClass.getName == "org.apache.spark.rpc.RpcEndpointNotFoundException")

  def isDriver(env: SparkEnv): Boolean = env.executorId == SparkContext.DRIVER_IDENTIFIER
}
