package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.{RpcAddress, RpcCallContext, RpcEndpoint, RpcEndpointRef, RpcEnv}

/** The driver's door: decodes what executors send and hands it to the coordinator of the run it is for. */
private[dstl] final class CoordinatorEndpoint(
    override val rpcEnv: RpcEnv,
    registry: RunRegistry,
    executors: ExecutorDirectory
) extends RpcEndpoint with Logging {

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case (Wire.Register, executor: String, endpoint: RpcEndpointRef) =>
      executors.register(executor, endpoint, context.senderAddress)
      context.reply(Wire.Done)
    case (operation: String, root: String, run: String, payload: Array[Byte]) =>
      try answer(operation, root, UUID.fromString(run), payload, context)
      catch { case NonFatal(e) => context.sendFailure(portable(e)) }
  }

  private def answer(
      operation: String,
      root: String,
      run: UUID,
      payload: Array[Byte],
      context: RpcCallContext
  ): Unit =
    operation match {
      case Wire.Open =>
        val reply = registry.current(root) match {
          case None => OpenReply.Unknown
          case Some(coordinator) if coordinator.run != run => OpenReply.Superseded
          case Some(coordinator) => coordinator.open()
        }
        context.reply(Wire.encodeOpenReply(reply))
      case Wire.Seal =>
        context.reply(Wire.encodeSealReply(seal(root, run, Wire.decodeSeal(payload))))
      case Wire.Uploaded =>
        registry.of(root, run).foreach(_.report(Wire.decodeReport(payload)))
        context.reply(Wire.Done)
      case Wire.LastBarrier =>
        context.reply(Wire.encodeBarrier(registry.of(root, run).flatMap(_.lastBarrier)))
      case Wire.ListSegments =>
        registry.of(root, run).fold(context.reply(Wire.encodeListing(Nil))) { coordinator =>
          coordinator.list(Wire.decodeText(payload)).whenComplete { (segments, error) =>
            if (error == null) context.reply(Wire.encodeListing(segments)) else context.sendFailure(portable(error))
          }: Unit
        }
      case Wire.Release =>
        registry.of(root, run).fold(context.reply(Wire.encodeFlag(false))) { coordinator =>
          coordinator.release(Wire.decodeKey(payload)).whenComplete { (known, error) =>
            if (error == null) context.reply(Wire.encodeFlag(known)) else context.sendFailure(portable(error))
          }: Unit
        }
      case other => throw new IllegalArgumentException(s"unknown operation $other")
    }

  private def seal(root: String, run: UUID, request: SealRequest): SealReply = {
    val coordinator = registry.of(root, run)
    val reply = coordinator.fold[SealReply](SealReply.Refused("another run has taken over"))(_.seal(request))
    reply match {
      // The task cannot be relied on to say so: Spark drops what a killed one fails with.
      case SealReply.Refused(reason) =>
        logWarning(DstlErrors.sealRefused(request.key, run, reason).getMessage +
          s" It is on executor ${request.executor}.")
      case _ =>
    }
    reply
  }

  /** Exceptions travel by Java serialization too, so they must be of classes that executors' RPC sees. */
  private def portable(error: Throwable): Throwable = new java.io.IOException(error.getMessage)

  override def onDisconnected(address: RpcAddress): Unit =
    executors.disconnected(address).foreach { executor =>
      logInfo(s"Executor $executor is gone")
      registry.all.foreach(_.executorLost(executor, "it is gone"))
    }
}

private[dstl] object CoordinatorEndpoint {
  val Name = "DstlCoordinator"

  // Guarded by this. A new SparkContext in the same process has a new environment.
  private var environment: SparkEnv = _
  private var registry: RunRegistry = _

  /** The driver's registry of runs, with the endpoint set up for executors to reach it. To be called on the driver. */
  def registryOf(env: SparkEnv): RunRegistry = synchronized {
    if (environment ne env) {
      val executors = new ExecutorDirectory
      registry = new RunRegistry(executors)
      env.rpcEnv.setupEndpoint(Name, new CoordinatorEndpoint(env.rpcEnv, registry, executors))
      environment = env
    }
    registry
  }
}
