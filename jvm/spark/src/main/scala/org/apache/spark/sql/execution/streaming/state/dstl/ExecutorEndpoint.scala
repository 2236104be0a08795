package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import org.apache.spark.SparkEnv
import org.apache.spark.rpc.{RpcCallContext, RpcEndpoint, RpcEndpointRef, RpcEnv}

/** The executor's door: the driver knocks when it wants what waits for upload to be uploaded now. */
private[dstl] final class ExecutorEndpoint(override val rpcEnv: RpcEnv) extends RpcEndpoint {
  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case (Wire.Flush, _: String, run: String, _: Array[Byte]) =>
      RunLogs.find(UUID.fromString(run)).foreach(_.flush())
      context.reply(Wire.Done)
  }
}

private[dstl] object ExecutorEndpoint {
  private val Name = "DstlExecutor"

  // Guarded by this.
  private var environment: SparkEnv = _
  private var endpoint: RpcEndpointRef = _

  /** This process's endpoint, set up on first use. */
  def ref(env: SparkEnv): RpcEndpointRef = synchronized {
    if (environment ne env) {
      endpoint = env.rpcEnv.setupEndpoint(Name, new ExecutorEndpoint(env.rpcEnv))
      environment = env
    }
    endpoint
  }
}
